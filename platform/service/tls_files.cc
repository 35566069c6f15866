#include "service/tls_files.h"

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "service/secret_key.h"

namespace muster::service {

namespace {

using base::Error;
using base::Result;

// Long: its users compared the fingerprint once, and would have to do it again.
constexpr std::chrono::hours kLifetime{24 * 365 * 10};
// A group of those who may read the machine's keys is customary for given ones.
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
  // The key first: a server that dies in between finds no certificate, and makes both anew.
  MUSTER_CHECK(base::write_file(files.own_key, identity.key, 0600));
  MUSTER_CHECK(base::write_file(files.own_certificate, identity.certificate, 0600));
  base::log_info("made a self-signed certificate, '" + files.own_certificate.string() + "'");
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
