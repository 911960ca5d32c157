// What the RPC programs take from examples/common.
#pragma once

#include "../common/command_line.hpp"
#include "../common/process.hpp"

namespace rpc {

using namespace common;

}  // namespace rpc
