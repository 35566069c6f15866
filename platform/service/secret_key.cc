#include "service/secret_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::service {

namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr size_t kMostKeyBytes = 64 << 10;

Result<access::SecretBox::Key> key_in(const std::string& text, const std::string& source) {
  auto key = access::parse_key(text);
  if (key) return key;
  // What stands there instead may be a key that is only misspelt: it is not repeated.
  return Error{.code = ErrorCode::kInvalid,
               .what = source + " does not hold a key",
               .advice = "a key is 64 hexadecimal digits: openssl rand -hex 32"};
}

Result<access::SecretBox::Key> key_in_file(const std::filesystem::path& file) {
  MUSTER_TRY(const std::string text, read_key_file(file, kAllButOwner));
  return key_in(text, "'" + file.string() + "'");
}

/// Secrets that are sealed with a key are there at once, and it must not come later.
Result<void> to_disk(const std::filesystem::path& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && ::fsync(fd.get()) == 0) return {};
  return base::system_error("cannot keep '" + path.string() + "'", errno);
}

/// Whole or not at all. REQUIRES: there is none, or what it sealed could not be opened any more.
Result<access::SecretBox::Key> make_key(const std::filesystem::path& file,
                                        base::RandomSource& random) {
  access::SecretBox::Key key{};
  random.fill(key);
  MUSTER_CHECK(base::write_file(file, access::key_text(key) + "\n", 0600));
  MUSTER_CHECK(to_disk(file));
  MUSTER_CHECK(to_disk(file.parent_path()));
  return key;
}

}  // namespace

Result<std::string> read_key_file(const std::filesystem::path& file, unsigned others) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    return base::system_error("cannot read '" + file.string() + "'", errno);
  }
  if ((status.st_mode & others) != 0) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "others than its owner can read the key in '" + file.string() + "'",
                 .advice = "chmod 600 " + file.string()};
  }
  return base::read_file(file, kMostKeyBytes);
}

Result<access::SecretBox::Key> find_secret_key(const SecretKeyPlaces& places,
                                               base::RandomSource& random) {
  if (!places.variable.empty()) return key_in(places.variable, "$MUSTER_SECRET_KEY");
  if (places.named_file) return key_in_file(*places.named_file);
  if (std::filesystem::exists(places.own_file)) return key_in_file(places.own_file);
  return make_key(places.own_file, random);
}

std::string take_secret_key_variable() {
  const char* const value = std::getenv("MUSTER_SECRET_KEY");
  const std::string key = value == nullptr ? "" : value;
  ::unsetenv("MUSTER_SECRET_KEY");
  return key;
}

}  // namespace muster::service
