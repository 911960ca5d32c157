// What ThreadSanitizer cannot see: the fence by which Asio counts the owners of an any_io_executor
// down, and how the standard library, which is compiled without it, counts those of an exception.
// Part of every test program.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions()
{
  return "race:boost::asio::execution::detail::shared_target_executor\n"
         "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
