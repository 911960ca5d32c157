// The two ends of a connection with TLS above it, and a certificate that is made for the case.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <utility>

#include "support/tcp_ends.hpp"

namespace support {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* p) const
  {
    Free(p);
  }
};

/// Gives `server` a new key and a certificate of it, which `client` trusts.
inline void introduce(boost::asio::ssl::context& server, boost::asio::ssl::context& client)
{
  const std::unique_ptr<EVP_PKEY_CTX, freed_by<EVP_PKEY_CTX_free>> maker(
    EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr));
  EVP_PKEY* made = nullptr;
  BOOST_REQUIRE(EVP_PKEY_keygen_init(maker.get()) == 1);
  BOOST_REQUIRE(EVP_PKEY_keygen(maker.get(), &made) == 1);
  const std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>> key(made);

  const std::unique_ptr<X509, freed_by<X509_free>> certificate(X509_new());
  X509* const x = certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x), 3600);
  X509_set_pubkey(x, made);
  const auto* const name = reinterpret_cast<const unsigned char*>("localhost");
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, name, -1, -1, 0);
  X509_set_issuer_name(x, X509_get_subject_name(x));
  BOOST_REQUIRE(X509_sign(x, made, nullptr) != 0);

  BOOST_REQUIRE(SSL_CTX_use_certificate(server.native_handle(), x) == 1);
  BOOST_REQUIRE(SSL_CTX_use_PrivateKey(server.native_handle(), made) == 1);
  BOOST_REQUIRE(X509_STORE_add_cert(SSL_CTX_get_cert_store(client.native_handle()), x) == 1);
  client.set_verify_mode(boost::asio::ssl::verify_peer);
}

/// A stream takes the key from its context when it is made.
struct tls_rules {
  tls_rules() { introduce(server_rules, client_rules); }

  boost::asio::ssl::context server_rules{boost::asio::ssl::context::tls};
  boost::asio::ssl::context client_rules{boost::asio::ssl::context::tls};
};

struct tls_ends : tls_rules, tcp_ends {
  using stream = boost::asio::ssl::stream<asio_wheel::tcp_stream>;
  using error_code = boost::system::error_code;

  /// Lets both sides agree.
  void shake_hands()
  {
    using boost::asio::ssl::stream_base;
    int done = 0;
    const auto count = [&](error_code ec) {
      BOOST_TEST(!ec);
      ++done;
    };
    client.next_layer().expires_after(std::chrono::seconds(30));
    server.next_layer().expires_after(std::chrono::seconds(30));
    client.async_handshake(stream_base::client, count);
    server.async_handshake(stream_base::server, count);
    run_until(context, [&] { return done == 2; });
    client.next_layer().expires_never();
    server.next_layer().expires_never();
  }

  stream client{std::move(local), client_rules};
  stream server{std::move(remote), server_rules};
};

}  // namespace support
