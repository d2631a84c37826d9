"""The paper's experiments: Figure 1, Tables 1 to 3 and the statements of its text, with their trainings and pages.

Experiments are studies. They take folders for runs and results, train whatever the results lack (`Fig1.train`,
`Tables.train`, `Claims.train`), and can be stopped at any time. From the results alone come the rows, curves and claims
that the commands print and draw, and the Markdown pages `fig1_page`, `write_page` and `write_claims_page`.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.paper._recipes import Recipe as Recipe, read_recipe
    from verydeep.paper._results_page import (
        page_path as page_path,
        results_page as results_page,
        write_page as write_page,
    )
    from verydeep.paper.claims._experiments import (
        EXPERIMENTS as EXPERIMENTS,
        selected_experiments as selected_experiments,
    )
    from verydeep.paper.claims._page import (
        claims_table_lines as claims_table_lines,
        write_claims_page as write_claims_page,
    )
    from verydeep.paper.claims._study import Claims as Claims
    from verydeep.paper.fig1._claims import PaperClaim as PaperClaim, fig1_claims as fig1_claims
    from verydeep.paper.fig1._gate_bias import (
        OpenLayers as OpenLayers,
        gate_biases as gate_biases,
        open_layers as open_layers,
        recommended_gate_bias as recommended_gate_bias,
    )
    from verydeep.paper.fig1._halving import (
        eliminated as eliminated,
        epochs_left as epochs_left,
        participants as participants,
    )
    from verydeep.paper.fig1._influence import Influence as Influence, influences as influences
    from verydeep.paper.fig1._page import (
        claim_lines as claim_lines,
        fig1_page as fig1_page,
        fig1_table_lines as fig1_table_lines,
    )
    from verydeep.paper.fig1._protocol import (
        HALVING as HALVING,
        NETWORKS as NETWORKS,
        QUICK as QUICK,
        Fig1Network as Fig1Network,
        Protocol as Protocol,
        selected_networks as selected_networks,
        settings_of as settings_of,
        without_halving as without_halving,
    )
    from verydeep.paper.fig1._results import Fig1Results as Fig1Results, Fig1Trial as Fig1Trial
    from verydeep.paper.fig1._study import Fig1 as Fig1, estimate as estimate
    from verydeep.paper.fig1._summary import (
        Fig1Row,
        best_curves as best_curves,
        fig1_rows as fig1_rows,
        loss_ratio as loss_ratio,
        mean_curves as mean_curves,
        read_fig1,
    )
    from verydeep.paper.tables._page import (
        log_lines as log_lines,
        read_results,
        replaced_recipes as replaced_recipes,
        table_lines as table_lines,
    )
    from verydeep.paper.tables._results import SeedCurve as SeedCurve, TableResult
    from verydeep.paper.tables._rows import (
        AUTHOR_LOGS as AUTHOR_LOGS,
        TABLE_ROWS,
        TABLES as TABLES,
        TEACHER as TEACHER,
        TableRow,
        selected_rows as selected_rows,
    )
    from verydeep.paper.tables._study import StudyOptions as StudyOptions, Tables as Tables
    from verydeep.paper.tables._time_left import time_left as time_left
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = ["TABLE_ROWS", "Fig1Row", "TableResult", "TableRow", "read_fig1", "read_recipe", "read_results"]
