"""Highway layers as ordinary `torch.nn` modules, and the plain layers they are compared with.

`functional` has the paper's operations, `Highway*` are single layers, `HighwayStack` and `PlainStack` whole stacks of
fully connected layers; initialisation and parameter groups follow the paper. `LSTMHighway` and
`RecurrentHighway` are the paper's relatives of the LSTM. `closed=` makes layers copy their input, `trace` shows what
happens inside.
"""

from verydeep.nn import functional
from verydeep.nn._activations import activation_name
from verydeep.nn._highway import Highway
from verydeep.nn._highway_conv import HighwayConv1d, HighwayConv2d, HighwayConv3d
from verydeep.nn._highway_linear import HighwayLinear
from verydeep.nn._highway_stack import HighwayStack
from verydeep.nn._init import init_weight, suggest_gate_bias
from verydeep.nn._layer import HighwayLayer, Trace
from verydeep.nn._lstm import LSTMHighway
from verydeep.nn._maxout import Maxout
from verydeep.nn._parameter_groups import parameter_groups
from verydeep.nn._plain_stack import PlainStack
from verydeep.nn._recompute import run_steps
from verydeep.nn._recurrent import RecurrentHighway
from verydeep.nn._stack import Stack

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
    "Stack",
    "Trace",
    "activation_name",
    "functional",
    "init_weight",
    "parameter_groups",
    "run_steps",
    "suggest_gate_bias",
]
