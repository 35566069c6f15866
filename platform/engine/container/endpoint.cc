#include "engine/container/endpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "base/units.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

using base::Error;
using base::ErrorCode;

constexpr std::string_view kUnix = "unix://";
constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kSsh = "ssh://";
constexpr const char* kForms = "expected unix:///SOCKET, tcp://HOST:PORT or ssh://USER@HOST/SOCKET";

Error invalid(std::string_view text, const std::string& why, std::string advice = kForms) {
  return {.code = ErrorCode::kInvalid,
          .what = "'" + std::string(text) + "' " + why,
          .advice = std::move(advice)};
}

/// Removes `prefix` from the front of `text`, if present.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Names become arguments of ssh, where a name that begins with '-' would be a flag.
bool is_plain_name(std::string_view name) {
  const auto is_plain = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') ||
           std::string_view("._-+%:").find(letter) != std::string_view::npos;
  };
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), is_plain);
}

struct HostPort {
  std::string host;
  int port = 0;
};

/// "HOST", "HOST:PORT", "[ADDRESS]", "[ADDRESS]:PORT".
Result<HostPort> parse_host(std::string_view whole, std::string_view text, int usual_port) {
  HostPort result{.port = usual_port};
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return invalid(whole, "has a '[' without its ']'");
    result.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    result.host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (!is_plain_name(result.host)) return invalid(whole, "contains no host");
  if (port.empty()) return result;
  const auto number = take(port, ":") ? base::number_of<int>(port) : std::nullopt;
  if (!number || *number < 1 || *number > 65535)
    return invalid(whole, "has no port from 1 to 65535");
  result.port = *number;
  return result;
}

Result<Endpoint> parse_unix(std::string_view whole, std::string_view path) {
  if (!path.starts_with('/')) return invalid(whole, "contains no absolute path of a socket");
  return UnixEndpoint{.socket = fs::path(path).lexically_normal()};
}

/// The missing ones of the three files.
Result<void> check_certificates(std::string_view whole, const fs::path& folder) {
  const std::string advice =
      "docker_cert_path (--docker-cert-path), or DOCKER_CERT_PATH, names the folder of ca.pem, "
      "cert.pem and key.pem: without them, access to the port would be root access to that host";
  if (folder.empty()) return invalid(whole, "has no certificates", advice);
  Error error = invalid(whole, "lacks certificates", advice);
  for (const char* name : {"ca.pem", "cert.pem", "key.pem"}) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / name, ignored)) continue;
    error.faults.push_back({.field = (folder / name).string(), .what = "is not there"});
  }
  if (error.faults.empty()) return {};
  return error;
}

Result<Endpoint> parse_tcp(std::string_view whole, std::string_view rest, const fs::path& folder) {
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    // The text before it may contain a password, so errors must not repeat it.
    return invalid("tcp://...@" + std::string(rest.substr(at + 1)),
                   "contains a user: with tcp, the certificate identifies the user");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  constexpr int kUsualPort = 2376;
  MUSTER_TRY(HostPort where, parse_host(whole, rest, kUsualPort));
  MUSTER_CHECK(check_certificates(whole, folder));
  return TlsEndpointOfHost{
      .host = std::move(where.host), .port = where.port, .certificates = folder};
}

Result<Endpoint> parse_ssh(std::string_view whole, std::string_view rest) {
  SshEndpoint result;
  const size_t slash = std::min(rest.find('/'), rest.size());
  if (slash + 1 < rest.size()) result.socket = fs::path(rest.substr(slash)).lexically_normal();
  rest = rest.substr(0, slash);
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    result.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    if (result.user.find(':') != std::string::npos) {
      return invalid("ssh://...@" + std::string(rest), "contains a password",
                     "ssh cannot prompt here: let it log in with a key (ssh-copy-id)");
    }
    if (!is_plain_name(result.user)) return invalid(whole, "contains no user before its '@'");
  }
  MUSTER_TRY(HostPort where, parse_host(whole, rest, 0));
  result.host = std::move(where.host);
  result.port = where.port;
  return result;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

std::string url_of(const UnixEndpoint& endpoint) {
  return std::string(kUnix) + endpoint.socket.string();
}

std::string url_of(const TlsEndpointOfHost& endpoint) {
  return std::string(kTcp) + bracketed(endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::string url_of(const SshEndpoint& endpoint) {
  std::string text(kSsh);
  if (!endpoint.user.empty()) text += endpoint.user + "@";
  text += bracketed(endpoint.host);
  if (endpoint.port != 0) text += ":" + std::to_string(endpoint.port);
  return text + endpoint.socket.string();
}

/// The value of a variable that is set and not empty.
std::string variable_or(const Surroundings& here, const char* name, const std::string& otherwise) {
  const auto value = here.variable(name);
  return value && !value->empty() ? *value : otherwise;
}

std::vector<fs::path> usual_sockets(const Surroundings& here) {
  const fs::path own =
      variable_or(here, "XDG_RUNTIME_DIR", "/run/user/" + std::to_string(here.user));
  return {own / "podman/podman.sock", own / "docker.sock", "/run/podman/podman.sock",
          "/run/docker.sock", "/var/run/docker.sock"};
}

Result<Endpoint> endpoint_of_variable(const Surroundings& here, const std::string& docker_host) {
  const std::string home = variable_or(here, "HOME", "");
  const fs::path usual = home.empty() ? fs::path() : fs::path(home) / ".docker";
  auto endpoint =
      parse_endpoint(docker_host, variable_or(here, "DOCKER_CERT_PATH", usual.string()));
  if (endpoint) return endpoint;
  Error error = std::move(endpoint).error();
  error.what = "DOCKER_HOST: " + error.what;
  return error;
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text, const fs::path& certificates) {
  std::string_view rest = text;
  if (take(rest, kUnix)) return parse_unix(text, rest);
  if (take(rest, kTcp)) return parse_tcp(text, rest, certificates);
  if (take(rest, kSsh)) return parse_ssh(text, rest);
  if (rest.starts_with('/')) return parse_unix(text, rest);
  const size_t scheme = rest.find("://");
  if (scheme == std::string_view::npos) return invalid(text, "is not the address of an engine");
  return invalid(text, "has an unknown scheme: " + std::string(rest.substr(0, scheme)));
}

std::string to_string(const Endpoint& endpoint) {
  return std::visit([](const auto& kind) { return url_of(kind); }, endpoint);
}

Surroundings surroundings_here() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
            const char* const value = std::getenv(name.c_str());
            if (value == nullptr) return std::nullopt;
            return value;
          },
          .is_socket =
              [](const fs::path& path) {
                struct stat status{};
                return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
                       ::access(path.c_str(), R_OK | W_OK) == 0;
              },
          .user = ::getuid()};
}

Result<Endpoint> find_endpoint(const Surroundings& here) {
  const std::string docker_host = variable_or(here, "DOCKER_HOST", "");
  if (!docker_host.empty()) return endpoint_of_variable(here, docker_host);
  Error error{.code = ErrorCode::kUnavailable,
              .what = "no Docker or Podman was found on this machine",
              .advice =
                  "start Podman (systemctl --user start podman.socket, or podman system service "
                  "--time=0) or Docker (your account must be in the group of its socket); or name "
                  "a host: DOCKER_HOST, or --host NAME=URL"};
  for (const fs::path& socket : usual_sockets(here)) {
    if (here.is_socket(socket)) return UnixEndpoint{.socket = socket};
    error.faults.push_back({.field = socket.string(), .what = "is not a usable socket"});
  }
  return error;
}

}  // namespace muster::engine
