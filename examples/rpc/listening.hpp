// examples/common/listening.hpp, in namespace rpc.
#pragma once

#include "../common/listening.hpp"
#include "command_line.hpp"
