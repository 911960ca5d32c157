// Asio's TLS, where Asio is compiled once and not in every file that uses it.
#if defined(BOOST_ASIO_SEPARATE_COMPILATION) || defined(ASIO_SEPARATE_COMPILATION)
#include <boost/asio/ssl/impl/src.hpp>
#endif
