// The workload of deadlines: n operations are under way. Each completes by one post, and its
// handler starts the next. A contender puts a deadline of 5 s on each, which never comes.
//
// A contender is a class template over the workload with
//   operations(const options&, Work&)
//   start(i)     starts chain i, whose operations call work.completed() until that says stop
//   context()    the io_context they run in
//
// A steady_timer of an hour is pending in every context. So the loop has a reactor to look at, as
// in any server, whichever the contender.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "command_line.hpp"
#include "measure.hpp"

namespace bench {

inline constexpr seconds deadline_delay{5};

// CPU ns per operation, after a tenth as many to warm up.
template <template <class> class Operations>
class deadline_work {
public:
  explicit deadline_work(const options& o)
    : n_{o.n},
      warm_{std::max<std::uint64_t>(o.steps / 10, 2 * o.n)},
      last_{warm_ + o.steps},
      operations_{o, *this}
  {}

  metrics run()
  {
    boost::asio::steady_timer idle{operations_.context(), std::chrono::hours{1}};
    idle.async_wait([](const boost::system::error_code&) {});
    for (std::size_t i = 0; i < n_; ++i) operations_.start(i);
    operations_.context().run();
    return {{"cpu_ns", ns_per(cpu_, last_ - warm_)}};
  }

  // Whether the chain goes on.
  bool completed()
  {
    ++done_;
    if (done_ == warm_) cpu_ = thread_cpu();
    if (done_ == last_) {
      cpu_ = thread_cpu() - cpu_;
      operations_.context().stop();
    }
    return done_ < last_;
  }

private:
  std::size_t n_;
  std::uint64_t warm_, last_, done_ = 0;
  nanoseconds cpu_{};
  Operations<deadline_work> operations_;
};

}  // namespace bench
