#include "engine/container/endpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/test_folder.h"

namespace muster::engine {
namespace {

void put_certificates(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) std::ofstream(folder / name) << "x";
}

TEST(ParseEndpoint, ReadsEveryForm) {
  const base::TestFolder keys;
  put_certificates(keys, {"ca.pem", "cert.pem", "key.pem"});
  const auto tls = [&](const std::string& host, int port) {
    return Endpoint(TlsEndpointOfHost{.host = host, .port = port, .certificates = keys});
  };
  const std::pair<std::string, Endpoint> cases[] = {
      {"unix:///run/docker.sock", UnixEndpoint{"/run/docker.sock"}},
      {"/run/docker.sock", UnixEndpoint{"/run/docker.sock"}},
      {"tcp://gpu-1", tls("gpu-1", 2376)},
      {"tcp://gpu-1:99/", tls("gpu-1", 99)},
      {"tcp://[fd00::1]:99", tls("fd00::1", 99)},
      {"ssh://gpu-1", SshEndpoint{.host = "gpu-1"}},
      {"ssh://gpu-1/", SshEndpoint{.host = "gpu-1"}},
      {"ssh://ada@gpu-1:2222/run/podman/podman.sock",
       SshEndpoint{"ada", "gpu-1", 2222, "/run/podman/podman.sock"}},
      {"ssh://ada@[fd00::1]/run/docker.sock", SshEndpoint{"ada", "fd00::1", 0, "/run/docker.sock"}},
  };
  for (const auto& [text, expected] : cases) {
    const auto endpoint = parse_endpoint(text, keys);
    ASSERT_TRUE(endpoint) << text << ": " << endpoint.error().to_string();
    EXPECT_EQ(*endpoint, expected) << text << " became " << to_string(*endpoint);
    EXPECT_EQ(*parse_endpoint(to_string(*endpoint), keys), expected) << to_string(*endpoint);
  }
}

TEST(ParseEndpoint, RefusesAMalformedAddress) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is not the address"},
      {"gpu-1", "is not the address"},
      {"unix://docker.sock", "contains no absolute path of a socket"},
      {"http://gpu-1:2375", "has an unknown scheme: http"},
      {"npipe:////./pipe/docker_engine", "has an unknown scheme: npipe"},
      {"tcp://", "contains no host"},
      {"tcp://:2376", "contains no host"},
      {"tcp://gpu-1:0", "has no port from 1 to 65535"},
      {"tcp://gpu-1:65536", "has no port from 1 to 65535"},
      {"tcp://gpu-1:", "has no port from 1 to 65535"},
      {"tcp://[fd00::1", "has a '[' without its ']'"},
      {"tcp://gpu-1/v1.40", "contains no host"},
      {"ssh://@gpu-1", "contains no user"},
      {"ssh://-oProxyCommand=evil", "contains no host"},
      {"ssh://-l@gpu-1", "contains no user"},
      {"ssh://gpu 1", "contains no host"},
  };
  for (const auto& [text, expected] : cases) {
    const auto endpoint = parse_endpoint(text, "/nowhere");
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code, base::ErrorCode::kInvalid) << text;
    EXPECT_NE(endpoint.error().to_string().find(expected), std::string::npos)
        << text << "\n"
        << endpoint.error().to_string();
  }
}

TEST(ParseEndpoint, NeverRepeatsAPassword) {
  for (const char* text : {"ssh://ada:geheim@gpu-1", "tcp://ada:geheim@gpu-1"}) {
    const auto endpoint = parse_endpoint(text, {});
    ASSERT_FALSE(endpoint);
    EXPECT_EQ(endpoint.error().to_string().find("geheim"), std::string::npos);
  }
}

TEST(ParseEndpoint, RequiresCertificatesForTcpAndNamesMissingOnes) {
  const auto none = parse_endpoint("tcp://gpu-1", {});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().to_string().find("docker_cert_path"), std::string::npos);

  const base::TestFolder keys;
  put_certificates(keys, {"cert.pem"});
  const auto some = parse_endpoint("tcp://gpu-1", keys);
  ASSERT_FALSE(some);
  const std::string text = some.error().to_string();
  EXPECT_NE(text.find((keys / "ca.pem").string() + ": is not there"), std::string::npos) << text;
  EXPECT_NE(text.find((keys / "key.pem").string() + ": is not there"), std::string::npos) << text;
  EXPECT_EQ(text.find((keys / "cert.pem").string() + ":"), std::string::npos) << text;
}

Surroundings surroundings(const std::map<std::string, std::string>& variables,
                          const std::set<std::string>& sockets, unsigned user = 1000) {
  return {.variable = [variables](const std::string& name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            if (found == variables.end()) return std::nullopt;
            return found->second;
          },
          .is_socket = [sockets](const auto& path) { return sockets.contains(path.string()); },
          .user = user};
}

TEST(FindEndpoint, TakesTheFirstOfTheUsualSockets) {
  struct Case {
    std::map<std::string, std::string> variables;
    std::set<std::string> sockets;
    std::string found;
  };
  const Case cases[] = {
      {{}, {"/run/docker.sock"}, "/run/docker.sock"},
      {{}, {"/run/docker.sock", "/run/podman/podman.sock"}, "/run/podman/podman.sock"},
      {{}, {"/run/user/1000/docker.sock", "/run/podman/podman.sock"}, "/run/user/1000/docker.sock"},
      {{{"XDG_RUNTIME_DIR", "/tmp/r"}},
       {"/run/user/1000/podman/podman.sock", "/tmp/r/podman/podman.sock"},
       "/tmp/r/podman/podman.sock"},
      {{{"DOCKER_HOST", ""}}, {"/var/run/docker.sock"}, "/var/run/docker.sock"},
      {{{"DOCKER_HOST", "unix:///srv/d.sock"}}, {"/run/docker.sock"}, "/srv/d.sock"},
  };
  for (const Case& each : cases) {
    const auto endpoint = find_endpoint(surroundings(each.variables, each.sockets));
    ASSERT_TRUE(endpoint) << each.found;
    EXPECT_EQ(to_string(*endpoint), "unix://" + each.found);
  }
}

TEST(FindEndpoint, TakesTheCertificatesOfDockersOwnVariable) {
  const base::TestFolder keys;
  put_certificates(keys, {"ca.pem", "cert.pem", "key.pem"});
  const auto endpoint = find_endpoint(surroundings(
      {{"DOCKER_HOST", "tcp://gpu-1:2376"}, {"DOCKER_CERT_PATH", keys.path().string()}}, {}));
  ASSERT_TRUE(endpoint) << endpoint.error().to_string();
  EXPECT_EQ(std::get<TlsEndpointOfHost>(*endpoint).certificates, keys.path());
}

TEST(FindEndpoint, ReportsAnInvalidVariable) {
  const auto endpoint =
      find_endpoint(surroundings({{"DOCKER_HOST", "docker.sock"}}, {"/run/docker.sock"}));
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().what, "DOCKER_HOST: 'docker.sock' is not the address of an engine");
}

TEST(FindEndpoint, ListsTheTriedSocketsAndTheRemedy) {
  const auto endpoint = find_endpoint(surroundings({}, {}));
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, base::ErrorCode::kUnavailable);
  const std::string text = endpoint.error().to_string();
  for (const char* expected :
       {"/run/user/1000/podman/podman.sock", "/run/user/1000/docker.sock",
        "/run/podman/podman.sock", "/run/docker.sock", "systemctl --user start podman.socket",
        "podman system service", "DOCKER_HOST"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\nin\n" << text;
  }
}

}  // namespace
}  // namespace muster::engine
