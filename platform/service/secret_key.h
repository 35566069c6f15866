// The key that secrets are sealed with, and where it comes from.
//
// I/O, blocking. The key is in no error and no log.
#pragma once

#include <filesystem>
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
  std::string variable;  ///< the value of $MUSTER_SECRET_KEY; empty: it is not set
  std::optional<std::filesystem::path> named_file;  ///< has to be there
  std::filesystem::path own_file;                   ///< made where it is missing, 0600
};

/// The first of: the variable, the named file, the own file.
///
/// kRefused: others can read the file. kInvalid: it holds no key.
base::Result<access::SecretBox::Key> find_secret_key(const SecretKeyPlaces& places,
                                                     base::RandomSource& random);

/// The permission bits of all but a file's owner.
inline constexpr unsigned kAllButOwner = 0077;

/// Reads a file that holds a key: kRefused where its mode lets in those of `others`, as in
/// kAllButOwner.
base::Result<std::string> read_key_file(const std::filesystem::path& file, unsigned others);

/// The value of $MUSTER_SECRET_KEY, which is removed from the environment: jobs inherit that.
std::string take_secret_key_variable();

// The certificate that a server shows, and its key: those it was given, or a self-signed pair which
// it makes once and keeps, for its users have pinned the fingerprint.
//
// I/O, blocking.

struct TlsFiles {
  std::optional<std::filesystem::path> given_certificate;  ///< both, or neither
  std::optional<std::filesystem::path> given_key;
  std::filesystem::path own_certificate;
  std::filesystem::path own_key;
  std::vector<std::string> names;  ///< for a certificate that is made
};

/// kRefused: others can read the key. kInvalid: the PEM cannot be read, or the two do not belong
/// together.
base::Result<http::TlsIdentity> find_tls_identity(const TlsFiles& files, base::Time now);

/// The names of a certificate that is made: localhost and its addresses, the host's name, the hosts
/// of the addresses (as in "10.0.0.7:7443") that are no wildcards, and `more`; each once. Pure.
std::vector<std::string> certificate_names(const std::string& host_name,
                                           const std::vector<std::string>& addresses,
                                           const std::vector<std::string>& more);

/// "10.0.0.7" of "10.0.0.7:7443"; "::1" of "[::1]:7443". Pure.
std::string host_of(const std::string& address);
/// Whether a host stands for every address of the machine. Pure.
bool is_wildcard(const std::string& host);

}  // namespace muster::service
