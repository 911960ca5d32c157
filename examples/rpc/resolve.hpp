// examples/common/resolve.hpp, in namespace rpc.
#pragma once

#include "../common/resolve.hpp"
#include "command_line.hpp"
