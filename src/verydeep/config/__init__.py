"""Configuration: TOML files to plain dictionaries, those to dataclasses, and back.

Names, TOML files or dictionaries come in and dataclasses come out, or the reverse. Errors name the setting that is
unknown, missing or of the wrong type, and the one that was probably meant.
"""

from verydeep.config._codec import (
    decode as decode,
    dotted as dotted,
    formerly as formerly,
    from_dict,
    renamed as renamed,
    to_dict,
)
from verydeep.config._read import (
    config_folder as config_folder,
    find_config,
    list_configs,
    read_settings as read_settings,
)
from verydeep.config._suggest import (
    explains_unknown as explains_unknown,
    former_names as former_names,
    setting_names as setting_names,
    suggest_setting as suggest_setting,
)
from verydeep.config._toml import to_toml

__all__ = ["find_config", "from_dict", "list_configs", "to_dict", "to_toml"]
