// Owning handles for OpenSSL's objects, and OpenSSL's errors as text. Only .cc files of http/
// include this header.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

namespace muster::http {

template <auto Free>
struct FreedBy {
  template <class Object>
  void operator()(Object* object) const {
    Free(object);
  }
};

using BioHandle = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;
using CertificateHandle = std::unique_ptr<X509, FreedBy<X509_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;

/// A reader of `text`, which must outlive it.
BioHandle bio_of(std::string_view text);

/// The errors that OpenSSL recorded on this thread since the last call, such as "bad end line".
std::string openssl_complaint();

/// The next certificate in `pem`, or null. Clears OpenSSL's error queue.
CertificateHandle read_certificate(BIO* pem);

/// SHA-256 of the certificate, 64 lower-case hexadecimal digits.
std::string fingerprint_of(const X509& certificate);

}  // namespace muster::http
