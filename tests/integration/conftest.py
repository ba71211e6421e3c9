# SPDX-License-Identifier: Apache-2.0
"""Makes checks.py importable from the tests of this directory, and skips nothing."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
