// The files of a server that must stay secret: the key that seals secrets, and the key of its
// certificate.
//
// I/O, blocking. No error and no log contains a key.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "access/secret_box.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "http/tls.h"

namespace muster::service {

struct SecretKeyPlaces {
  std::string variable;  ///< the value of $MUSTER_SECRET_KEY; empty: not set
  std::optional<std::filesystem::path> named_file;  ///< must exist
  std::filesystem::path own_file;                   ///< created if it is missing, 0600
};

/// The key from the first of these: the variable, the named file, the own file.
///
/// kRefused: other users can read the file. kInvalid: it contains no key.
base::Result<access::SecretBox::Key> find_secret_key(const SecretKeyPlaces& places,
                                                     base::RandomSource& random);

/// The permission bits of all users but the owner.
inline constexpr unsigned kAllButOwner = 0077;

/// Reads a file with a key. kRefused: its mode has any of the bits in `others`, such as
/// kAllButOwner.
base::Result<std::string> read_key_file(const std::filesystem::path& file, unsigned others);

/// The value of $MUSTER_SECRET_KEY. Removes it from the environment, which jobs inherit.
std::string take_secret_key_variable();

// The server's certificate and its key: given files, or a self-signed pair that is created once and
// kept, because clients pin its fingerprint.

struct TlsFiles {
  std::optional<std::filesystem::path> given_certificate;  ///< both files are given, or neither
  std::optional<std::filesystem::path> given_key;
  std::filesystem::path own_certificate;
  std::filesystem::path own_key;
  std::vector<std::string> names;  ///< for a self-signed certificate
};

/// kRefused: other users can read the key. kInvalid: a file is not valid PEM, or the key does not
/// match the certificate.
base::Result<http::TlsIdentity> find_tls_identity(const TlsFiles& files, base::Time now);

/// Watches the certificate that is served: a program may replace its files, as cert-manager does, and
/// it expires.
class CertificateWatch {
 public:
  /// The modification times of the files; nothing: a file is missing or was not given.
  struct Stamps {
    std::optional<std::filesystem::file_time_type> certificate;
    std::optional<std::filesystem::file_time_type> key;

    bool operator==(const Stamps&) const = default;
  };
  /// To be called before the files are read.
  static Stamps stamps_of(const TlsFiles& files);

  /// The certificate that was read after `stamps` is served from now on.
  void serves(const Stamps& stamps, const http::CertificateTimes& times);

  /// Calls `renew` if the given files have changed since, which calls serves() if it succeeds. An
  /// error is logged once, and the call is repeated at the next look. Also logs a warning once a day
  /// if the certificate expires soon: in 14 days, or in the last quarter of its lifetime if that is
  /// shorter.
  void look(const TlsFiles& files, base::Time now,
            const std::function<base::Result<void>()>& renew);

 private:
  void warn_of_end(const TlsFiles& files, base::Time now);

  Stamps stamps_;
  http::CertificateTimes times_;
  std::string logged_error_;
  std::optional<base::Time> warned_;
};

/// The names of a self-signed certificate: localhost and its addresses, the host's name, the hosts
/// of those addresses ("10.0.0.7:7443") that are not wildcards, and `more`; each once. Pure.
std::vector<std::string> certificate_names(const std::string& host_name,
                                           const std::vector<std::string>& addresses,
                                           const std::vector<std::string>& more);

/// "10.0.0.7" of "10.0.0.7:7443"; "::1" of "[::1]:7443". Pure.
std::string host_of(const std::string& address);
/// Whether a host means every address of the machine. Pure.
bool is_wildcard(const std::string& host);

}  // namespace muster::service
