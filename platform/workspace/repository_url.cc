#include "workspace/repository_url.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;

namespace {

constexpr std::string_view kSchemeEnd = "://";
constexpr std::string_view kGitPlus = "git+";

bool is_control(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return code <= 0x20 || code == 0x7f;
}

/// "git@host:path", the form of scp: no slash before the colon.
bool is_scp_like(std::string_view text) {
  const std::string_view head = text.substr(0, text.find('/'));
  const size_t at = head.rfind('@');
  return at != std::string_view::npos && at > 0 && head.find(':', at) != std::string_view::npos;
}

/// Whether the URL contains "user:password@", also if a '/' in the password makes it look like a
/// path.
bool has_password(std::string_view behind_scheme) {
  const size_t at = behind_scheme.rfind('@');
  const size_t colon = behind_scheme.find(':');
  if (behind_scheme.starts_with('[') || at == std::string_view::npos || colon > at) return false;
  const std::string_view rest = behind_scheme.substr(colon + 1);
  const std::string_view port = rest.substr(0, rest.find('/'));
  return port.empty() || port.find_first_not_of("0123456789") != std::string_view::npos;
}

/// "ext::sh -c ...": git would run git-remote-ext with the rest.
bool names_transport(std::string_view text) {
  const size_t colons = text.find("::");
  if (colons == std::string_view::npos || colons == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(colons), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
           letter == '+' || letter == '.';
  });
}

Error password_within(const FlagNames& flags) {
  return invalid_source(
      "the URL of the workspace contains a password, which others can read",
      "change the password if others may have read it, and give the URL without it" +
          (flags.takes_password()
               ? ", with " + flags.username + " and " + flags.password + " beside it"
               : "; git gets the password from its credential helpers (git help credentials)"));
}

struct UrlParts {
  std::string scheme;
  bool git_plus = false;
  std::string user;  ///< before the '@'
  std::string host;  ///< with its port
  std::string path;  ///< from the '/' on
};

UrlParts parts_of(std::string_view text) {
  UrlParts parts;
  const size_t end = text.find(kSchemeEnd);
  parts.scheme = base::lower_case(text.substr(0, end));
  if (parts.scheme.starts_with(kGitPlus)) {
    parts.git_plus = true;
    parts.scheme.erase(0, kGitPlus.size());
  }
  text.remove_prefix(end + kSchemeEnd.size());
  const size_t slash = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, slash);
  parts.path = text.substr(slash);
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    parts.user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  parts.host = authority;
  return parts;
}

bool is_host(std::string_view host) {
  return !host.empty() && host.front() != '-' &&
         std::all_of(host.begin(), host.end(), [](char letter) {
           return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                  std::string_view("-._:[]").find(letter) != std::string_view::npos;
         });
}

std::string_view without_end_slashes(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

Result<void> check_scheme(const UrlParts& parts, const std::string& shown) {
  constexpr std::array<std::string_view, 5> kFetched{"https", "http", "ssh", "git", "file"};
  if (parts.scheme == "s3") {
    return invalid_source("a workspace cannot be fetched from S3 ('" + shown + "')",
                          "copy it to a folder (aws s3 cp --recursive), and give the folder");
  }
  if (std::find(kFetched.begin(), kFetched.end(), parts.scheme) == kFetched.end()) {
    return invalid_source(
        "a workspace cannot be fetched by '" + parts.scheme + "' ('" + shown + "')",
        "give a folder, an archive, or the https:// or ssh:// URL of a repository");
  }
  return {};
}

/// An http URL may be anything, so only one that ends with .git, or git+http, is a repository.
Result<void> check_web_address(const UrlParts& parts, const std::string& shown) {
  const std::string path = base::lower_case(without_end_slashes(parts.path));
  if (parts.git_plus || path.ends_with(".git")) return {};
  for (const std::string_view archive : {".zip", ".tar", ".tar.gz", ".tgz"}) {
    if (!path.ends_with(archive)) continue;
    return invalid_source("an archive cannot be fetched from the web ('" + shown + "')",
                          "download it, and give the file");
  }
  return invalid_source(
      "'" + shown + "' may not be a repository",
      "the URL of a repository ends in .git; if this is a repository, write git+" + shown);
}

Result<RepositoryUrl> parse_scp_like(std::string_view text) {
  const size_t at = text.substr(0, text.find('/')).rfind('@');
  const size_t colon = text.find(':', at);
  const std::string_view host = text.substr(at + 1, colon - at - 1);
  if (!is_host(host) || text.size() == colon + 1 || text[colon + 1] == '-') {
    return invalid_source("'" + std::string(text) + "' is not the address of a repository",
                          "give an address such as git@HOST:PATH");
  }
  return RepositoryUrl{.url = std::string(text), .over_ssh = true};
}

Result<RepositoryUrl> parse_file_url(const UrlParts& parts, const std::string& shown) {
  if (parts.host.empty() && parts.path.size() > 1) return RepositoryUrl{.url = shown};
  return invalid_source("'" + shown + "' is not a repository on this machine",
                        "give an address such as file:///PATH");
}

}  // namespace

Error invalid_source(std::string what, std::string advice) {
  return {.code = ErrorCode::kInvalid, .what = std::move(what), .advice = std::move(advice)};
}

bool is_address(std::string_view text) {
  if (text.starts_with('/') || text.starts_with('.')) return false;
  return text.find(kSchemeEnd) != std::string_view::npos || is_scp_like(text) ||
         names_transport(text);
}

Result<RepositoryUrl> parse_repository_url(std::string_view text, const FlagNames& flags) {
  const size_t scheme_end = text.find(kSchemeEnd);
  const bool has_scheme = scheme_end != std::string_view::npos;
  // Checked first, because no other error may repeat a password.
  if (has_scheme && has_password(text.substr(scheme_end + kSchemeEnd.size()))) {
    return password_within(flags);
  }
  if (!has_scheme && is_scp_like(text) && text.find(':') < text.find('@')) {
    return password_within(flags);
  }
  if (names_transport(text)) {
    return invalid_source("git would run a program for '" +
                              std::string(text.substr(0, text.find("::"))) +
                              "::', which is not allowed for a workspace",
                          "give the https:// or ssh:// URL of a repository");
  }
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return invalid_source("the URL of the workspace contains blanks or line breaks",
                          "write blanks as %20");
  }
  if (text.starts_with('-')) {
    return invalid_source("'" + std::string(text) + "' is an option, not a workspace",
                          "give a folder, a .zip, or the URL of a repository");
  }
  if (!has_scheme) return parse_scp_like(text);

  const UrlParts parts = parts_of(text);
  const bool is_web = parts.scheme == "https" || parts.scheme == "http";
  const std::string user = parts.user.empty() || is_web ? "" : parts.user + "@";
  const std::string shown = parts.scheme + "://" + user + parts.host + parts.path;
  MUSTER_CHECK(check_scheme(parts, shown));
  if (parts.scheme == "file") return parse_file_url(parts, shown);
  if (!is_host(parts.host) || parts.user.starts_with('-')) {
    return invalid_source("'" + shown + "' contains no host",
                          "give an address such as https://HOST/PATH.git");
  }
  if (!is_web) return RepositoryUrl{.url = shown, .over_ssh = parts.scheme == "ssh"};
  MUSTER_CHECK(check_web_address(parts, shown));
  return RepositoryUrl{
      .url = shown, .username = parts.user, .origin = parts.scheme + "://" + parts.host};
}

Result<void> check_ref(std::string_view ref) {
  const auto cannot_be_in = [](char letter) {
    return is_control(letter) ||
           std::string_view("~^:?*[\\").find(letter) != std::string_view::npos;
  };
  const bool is_one = !ref.empty() && !ref.starts_with('-') && !ref.starts_with('+') &&
                      !ref.starts_with('/') && ref.find("..") == std::string_view::npos &&
                      ref.find("@{") == std::string_view::npos &&
                      std::none_of(ref.begin(), ref.end(), cannot_be_in);
  if (is_one) return {};
  return invalid_source("'" + std::string(ref) + "' is not a branch, a tag or a commit",
                        "list them: git ls-remote URL");
}

bool may_be_commit(std::string_view ref) {
  constexpr size_t kShortest = 4;
  constexpr size_t kLongest = 64;
  return ref.size() >= kShortest && ref.size() <= kLongest &&
         std::all_of(ref.begin(), ref.end(), [](unsigned char digit) {
           return std::isxdigit(digit) != 0 && std::isupper(digit) == 0;
         });
}

}  // namespace muster::workspace
