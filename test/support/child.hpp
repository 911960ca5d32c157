// A child process to stop, to fork from or to kill.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <utility>

namespace support {

/// Runs `act`, which returns whether all went well, in a child process. The child ends without
/// running destructors other than those that `act` runs.
class child {
public:
  template <class Act>
  explicit child(Act act) : pid_(::fork())
  {
    BOOST_REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    int status = 1;
    try {
      if (act()) status = 0;
    } catch (...) {
    }
    ::_exit(status);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child()
  {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void send(int signal) const { BOOST_REQUIRE(::kill(pid_, signal) == 0); }

  /// Waits until the child ends. Returns whether it ended normally and all went well.
  [[nodiscard]] bool went_well()
  {
    int status = 0;
    BOOST_REQUIRE(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

private:
  ::pid_t pid_;
};

}  // namespace support
