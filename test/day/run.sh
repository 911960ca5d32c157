#!/usr/bin/env bash
# A server's day with 1,000 clients, seed after seed, until one fails: test/day/run.sh [seeds [first]]
# Builds with the preset `release`. The first seed that fails is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[[ -d build/release ]] || cmake --preset release
cmake --build build/release --target day
exec build/release/test/day "${1:-10}" "${2:-1}" 1000 24
