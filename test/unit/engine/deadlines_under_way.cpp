// Deadlines on their way to strands learn of handlers that begin there, and of no others.
#include <detail/engine/deadlines_under_way.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <vector>

namespace asio = boost::asio;
using asio_wheel::detail::deadlines_under_way;

namespace {

struct two_strands {
  /// A handler of the wheel begins there.
  void begin_on(const asio::any_io_executor& ex)
  {
    asio::post(ex, [this] { all.note_begun(); });
    context.restart();
    context.run();
  }

  asio::io_context context;
  const asio::strand<asio::any_io_executor> one = asio::make_strand(context.get_executor());
  const asio::strand<asio::io_context::executor_type> other =
    asio::make_strand(context.get_executor());
  deadlines_under_way all;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(deadlines_on_their_way)

BOOST_FIXTURE_TEST_CASE(learn_of_handlers_on_their_strand, two_strands)
{
  auto first = all.add(one);
  auto second = all.add(asio::any_io_executor(other));
  BOOST_TEST(int{first} != int{second});
  BOOST_TEST(!all.take_begun(first));
  begin_on(one);
  BOOST_TEST(all.take_begun(first));
  BOOST_TEST(!all.take_begun(first));
  BOOST_TEST(!all.take_begun(second));
  begin_on(other);
  BOOST_TEST(!all.take_begun(first));
  BOOST_TEST(all.take_begun(second));
  begin_on(context.get_executor());
  BOOST_TEST(!all.take_begun(first));
  BOOST_TEST(!all.take_begun(second));
  all.remove(first);
  all.remove(second);
  BOOST_TEST(int{first} == 0);
}

BOOST_FIXTURE_TEST_CASE(are_let_go_elsewhere_and_if_they_are_many, two_strands)
{
  BOOST_TEST(int{all.add(context.get_executor())} == 0);
  BOOST_TEST(int{all.add({})} == 0);
  std::vector<deadlines_under_way::place> places;
  while (const auto p = all.add(one)) places.push_back(p);
  BOOST_TEST(places.size() >= 64U);
  begin_on(one);
  for (auto& p : places) {
    BOOST_TEST(all.take_begun(p));
    all.remove(p);
  }
  BOOST_TEST(int{all.add(other)} == 1);
}

BOOST_AUTO_TEST_SUITE_END()
