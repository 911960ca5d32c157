// A program on the shared library: what both have of Asio's is the same.
#include <asio_wheel.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

int failures = 0;

void expect(bool what, const char* claim)
{
  if (what) return;
  std::printf("wrong: %s\n", claim);
  ++failures;
}

void finds_the_service_that_the_library_made()
{
  asio::io_context context;
  expect(!asio::has_service<wheel_timer_service>(context), "a new context has no wheel");
  wheel_timer_service& wheel = use_wheel(context);
  expect(asio::has_service<wheel_timer_service>(context), "use_wheel() makes the wheel");
  expect(&asio::use_service<wheel_timer_service>(context) == &wheel, "use_service() finds it");
  expect(&asio::use_service<wheel_timer_service>(wheel.context()) == &wheel, "so it does again");
}

void knows_the_thread_that_the_program_runs()
{
  asio::io_context context;
  wheel_timer timer(context);
  asio::post(context, [&] {
    timer.expires_after(1h);
    timer.async_wait([](error_code) {});
  });
  // Otherwise the library would post a function that sets its timer.
  expect(context.poll() == 1, "a handler sets the timer itself");
}

asio::awaitable<void> wait_for(wheel_timer& timer)
{
  co_await timer.async_wait(asio::use_awaitable);
}

void catches_what_the_library_throws()
{
  asio::io_context context;
  wheel_timer timer(context, 1h);
  bool caught = false;
  asio::co_spawn(context, wait_for(timer), timeout_after(1ms, [&](const std::exception_ptr& e) {
                   try {
                     if (e) std::rethrow_exception(e);
                   } catch (const system_error& error) {
                     caught = error.code() == asio::error::timed_out;
                   }
                 }));
  context.run();
  expect(caught, "system_error(timed_out) is caught as such");

  std::string text;
  try {
    wheel_options options;
    options.tick = 0ns;
    asio::io_context other;
    make_wheel(other, options);
  } catch (const std::invalid_argument& e) {
    text = e.what();
  }
  expect(text == "wheel_options::tick is 0ns; it must be from 1us to 24h", "so is a bad option");
}

void compares_error_codes()
{
  asio::io_context context;
  wheel_options options;
  options.max_pending = 1;
  wheel_timer_service& wheel = make_wheel(context, options);
  error_code first, second;
  wheel.async_wait(1ms, [&](error_code ec) { first = ec; });
  wheel.async_wait(1ms, [&](error_code ec) { second = ec; });
  context.run();
  expect(!first, "the first wait succeeds");
  expect(second == wheel_errc::too_many_pending, "the second is one too many");
}

}  // namespace

int main()
{
  finds_the_service_that_the_library_made();
  knows_the_thread_that_the_program_runs();
  catches_what_the_library_throws();
  compares_error_codes();
  return failures == 0 ? 0 : 1;
}
