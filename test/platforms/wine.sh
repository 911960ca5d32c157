#!/bin/sh
# wine.sh <program> <argument>...: runs it under wine, in a prefix of its own and without a word from
# wine itself.
WINEPREFIX=$(cd "$(dirname "$0")/../.." && pwd)/build/platforms/wine
WINEDEBUG=-all
export WINEPREFIX WINEDEBUG
unset DISPLAY
mkdir -p "$WINEPREFIX"
exec "$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)" "$@"
