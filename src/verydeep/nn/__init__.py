"""Highway layers, the plain layers they are compared with, and what they need to start well."""

from verydeep.nn import functional
from verydeep.nn._conv import HighwayConv1d, HighwayConv2d, HighwayConv3d
from verydeep.nn._groups import parameter_groups
from verydeep.nn._highway import Highway
from verydeep.nn._highway_stack import HighwayStack
from verydeep.nn._init import init_weight, suggest_gate_bias
from verydeep.nn._layer import HighwayLayer, Trace
from verydeep.nn._linear import HighwayLinear
from verydeep.nn._lstm import LSTMHighway
from verydeep.nn._maxout import Maxout
from verydeep.nn._plain_stack import PlainStack
from verydeep.nn._recompute import run_steps
from verydeep.nn._recurrent import RecurrentHighway

__all__ = [
    "Highway",
    "HighwayConv1d",
    "HighwayConv2d",
    "HighwayConv3d",
    "HighwayLayer",
    "HighwayLinear",
    "HighwayStack",
    "LSTMHighway",
    "Maxout",
    "PlainStack",
    "RecurrentHighway",
    "Trace",
    "functional",
    "init_weight",
    "parameter_groups",
    "run_steps",
    "suggest_gate_bias",
]
