// The key that secrets are sealed with, and where it comes from.
//
// I/O, blocking. The key is in no error and no log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "access/secret_box.h"
#include "base/random.h"
#include "base/result.h"

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

}  // namespace muster::service
