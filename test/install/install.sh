#!/usr/bin/env bash
# install.sh <build tree> <folder>: installs the tree beside the folder and moves it there: nothing
# that was installed may know where it once was.
set -euo pipefail

rm -rf "$2" "$2.first"
cmake --install "$1" --prefix "$2.first"
mv "$2.first" "$2"
if grep -rlF -e "$2.first" -e "$PWD" --include='*.cmake' --include='*.pc' "$2"; then
  echo "these files know a path of the build" >&2
  exit 1
fi
