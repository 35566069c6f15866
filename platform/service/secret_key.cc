#include "service/secret_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
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
  // The content is not repeated: it may be a key with a typing error.
  return Error{.code = ErrorCode::kInvalid,
               .what = source + " contains no key",
               .advice = "a key is 64 hexadecimal digits: openssl rand -hex 32"};
}

Result<access::SecretBox::Key> key_in_file(const std::filesystem::path& file) {
  MUSTER_TRY(const std::string text, read_key_file(file, kAllButOwner));
  return key_in(text, "'" + file.string() + "'");
}

/// The key must be on disk before the first secret that is sealed with it.
Result<void> to_disk(const std::filesystem::path& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && ::fsync(fd.get()) == 0) return {};
  return base::system_error("cannot store '" + path.string() + "'", errno);
}

/// Creates the whole file or nothing. REQUIRES: no key exists.
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
                 .what = "users other than the owner can read the key in '" + file.string() + "'",
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

namespace {

// Long, because users would have to compare the new fingerprint.
constexpr std::chrono::hours kLifetime{24 * 365 * 10};
// For given files, a group that may read the machine's keys is customary.
constexpr unsigned kStrangers = 0007;

Result<http::TlsIdentity> read_identity(const std::filesystem::path& certificate,
                                        const std::filesystem::path& key, unsigned others) {
  http::TlsIdentity identity;
  MUSTER_TRY(identity.certificate, base::read_file(certificate));
  MUSTER_TRY(identity.key, read_key_file(key, others));
  const Result<void> checked = http::check_identity(identity);
  if (checked) return identity;
  Error error = checked.error();
  error.what = "'" + certificate.string() + "' and '" + key.string() + "': " + error.what;
  return error;
}

Result<http::TlsIdentity> make_identity(const TlsFiles& files, base::Time now) {
  MUSTER_CHECK(base::make_private_folder(files.own_certificate.parent_path()));
  MUSTER_TRY(auto identity, http::make_self_signed(files.names, now, kLifetime));
  // The key first: after a crash in between there is no certificate, and both are created again.
  MUSTER_CHECK(base::write_file(files.own_key, identity.key, 0600));
  MUSTER_CHECK(base::write_file(files.own_certificate, identity.certificate, 0600));
  base::log_info("created a self-signed certificate, '" + files.own_certificate.string() + "'");
  return identity;
}

}  // namespace

Result<http::TlsIdentity> find_tls_identity(const TlsFiles& files, base::Time now) {
  if (files.given_certificate && files.given_key) {
    return read_identity(*files.given_certificate, *files.given_key, kStrangers);
  }
  if (std::filesystem::exists(files.own_certificate)) {
    return read_identity(files.own_certificate, files.own_key, kAllButOwner);
  }
  return make_identity(files, now);
}

CertificateWatch::Stamps CertificateWatch::stamps_of(const TlsFiles& files) {
  const auto written = [](const std::optional<std::filesystem::path>& file)
      -> std::optional<std::filesystem::file_time_type> {
    if (!file) return std::nullopt;
    std::error_code failed;
    const auto time = std::filesystem::last_write_time(*file, failed);
    return failed ? std::nullopt : std::optional(time);
  };
  return {.certificate = written(files.given_certificate), .key = written(files.given_key)};
}

void CertificateWatch::serves(const Stamps& stamps, const http::CertificateTimes& times) {
  stamps_ = stamps;
  if (times.until != times_.until) warned_.reset();
  times_ = times;
  logged_error_.clear();
}

void CertificateWatch::look(const TlsFiles& files, base::Time now,
                            const std::function<Result<void>()>& renew) {
  if (stamps_of(files) == stamps_) {
    logged_error_.clear();
  } else {
    const Result<void> renewed = renew();
    const std::string error = renewed ? "" : renewed.error().to_string();
    if (error != logged_error_ && !error.empty()) {
      base::log_error(
          "the files of the certificate have changed and cannot be used; the server "
          "keeps the earlier certificate: " +
          error);
    }
    logged_error_ = error;
  }
  warn_of_end(files, now);
}

void CertificateWatch::warn_of_end(const TlsFiles& files, base::Time now) {
  const std::chrono::nanoseconds soon =
      std::min<std::chrono::nanoseconds>(std::chrono::days(14), (times_.until - times_.from) / 4);
  if (now < times_.until - soon) return;
  if (warned_ && now - *warned_ < std::chrono::days(1)) return;
  warned_ = now;
  base::log_warning(
      std::string("the certificate of this server ") +
          (now < times_.until ? "expires at " : "expired at ") + base::to_rfc3339(times_.until),
      {{"advice", files.given_certificate
                      ? "renew the files of tls.certificate and tls.key; the server reads them "
                        "within a minute"
                      : "remove '" + files.own_certificate.string() +
                            "' and restart the server, which makes another certificate; users "
                            "then pin its fingerprint"}});
}

std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

bool is_wildcard(const std::string& host) {
  return host == "0.0.0.0" || host == "::" || host == "*";
}

std::vector<std::string> certificate_names(const std::string& host_name,
                                           const std::vector<std::string>& addresses,
                                           const std::vector<std::string>& more) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
    if (!name.empty() && !is_wildcard(name) && !is_known) names.push_back(name);
  };
  for (const char* usual : {"localhost", "127.0.0.1", "::1"}) add(usual);
  add(host_name);
  for (const std::string& address : addresses) add(host_of(address));
  for (const std::string& name : more) add(name);
  return names;
}

}  // namespace muster::service
