#!/usr/bin/env bash
# pkg_config.sh <installed folder> <compiler> <library>: builds and runs the consumer with what pkg-config says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

config=$(find "$1" -name "$3.pc")
export PKG_CONFIG_PATH=${config%/*}
library_folder=$(pkg-config --variable=libdir "$3")
read -ra flags <<<"$(pkg-config --cflags --libs "$3")"
"$2" -std=c++20 ../subdir/main.cpp "${flags[@]}" -o "$1_pkg_config"
LD_LIBRARY_PATH=$library_folder "$1_pkg_config"
