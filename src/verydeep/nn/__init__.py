"""Highway layers as ordinary `torch.nn` modules, and the plain layers they are compared with.

`HighwayLinear` and `HighwayConv1d` to `HighwayConv3d` are single layers, `Highway` makes one from any modules.
`HighwayStack`, `ResidualStack` and `PlainStack` are whole stacks of fully connected layers. `LSTMHighway` and
`RecurrentHighway` are the relatives of the LSTM. `functional` has the paper's operations. `closed=` makes highway
layers copy their input, and `trace` shows what happens inside; layers are counted from 0.
"""

from verydeep.nn import functional
from verydeep.nn._activations import (
    activation_name as activation_name,
    pieces_of as pieces_of,
    resolve_activation as resolve_activation,
)
from verydeep.nn._conv_layer import run_conv as run_conv
from verydeep.nn._dropout import run_dropout as run_dropout
from verydeep.nn._highway import Highway
from verydeep.nn._highway_conv import HighwayConv1d, HighwayConv2d, HighwayConv3d
from verydeep.nn._highway_linear import HighwayLinear
from verydeep.nn._highway_stack import HighwayStack
from verydeep.nn._inference import run_inference as run_inference
from verydeep.nn._init import init_weight as init_weight, suggest_gate_bias
from verydeep.nn._layer import HighwayLayer, Trace, Unscriptable as Unscriptable, check_closed as check_closed
from verydeep.nn._lstm import LSTMHighway
from verydeep.nn._max_pool import run_max_pool as run_max_pool
from verydeep.nn._maxout import Maxout
from verydeep.nn._parameter_groups import parameter_groups
from verydeep.nn._plain_stack import PlainStack
from verydeep.nn._recompute import run_steps as run_steps
from verydeep.nn._recurrent import RecurrentHighway
from verydeep.nn._residual_stack import ResidualStack
from verydeep.nn._stack import Stack as Stack

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
    "ResidualStack",
    "Trace",
    "functional",
    "parameter_groups",
    "suggest_gate_bias",
]
