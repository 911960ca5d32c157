// Plays random scripts of operations on the library and on a model of it.
#include <boost/test/unit_test.hpp>

#include "model/script.hpp"

namespace {

void expect_no_fault(model::player play, std::size_t steps)
{
  const std::string fault = model::first_fault(
    play, steps, [](std::uint64_t seed) { BOOST_TEST_CHECKPOINT("seed " << seed); });
  BOOST_CHECK_MESSAGE(fault.empty(), fault);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(timing_wheel_model)

BOOST_AUTO_TEST_CASE(does_what_a_multimap_does)
{
  expect_no_fault(model::play_on_wheel, model::steps_to_take(1'000'000));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(service_model)

BOOST_AUTO_TEST_CASE(does_what_a_list_of_pending_waits_does)
{
  expect_no_fault(model::play_on_service, model::steps_to_take(1'000'000) / 5);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(stream_model)

BOOST_AUTO_TEST_CASE(does_what_three_deadlines_do)
{
  expect_no_fault(model::play_on_stream, model::steps_to_take(1'000'000) / 20);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tasks_model)

BOOST_AUTO_TEST_CASE(does_what_a_list_of_next_times_does)
{
  expect_no_fault(model::play_on_tasks, model::steps_to_take(1'000'000) / 10);
}

BOOST_AUTO_TEST_SUITE_END()
