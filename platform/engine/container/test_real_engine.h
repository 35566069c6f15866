// For tests: runs every call of the client against a real Podman or Docker. MUSTER_DOCKER_SOCKET
// names its socket; if MUSTER_DOCKER_TLS names an address, TLS is used instead. The engine gets an
// image with one program (test_program.cc). Everything else that a test creates is removed at its
// end. tests/containers_client.py starts the engines.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/container/test_docker.h"
#include "http/async_client.h"
#include "workspace/small_archive.h"

namespace muster::engine {

inline constexpr const char* kImage = "muster-client-test:latest";
inline constexpr const char* kLabel = "org.muster.client-test";
inline const std::map<std::string, std::string> kLabels{{kLabel, "1"}, {"other", "a=b"}};
inline const std::vector<std::string> kFilter{std::string(kLabel) + "=1"};

inline std::string socket_of_engine() {
  const char* const socket = std::getenv("MUSTER_DOCKER_SOCKET");
  if (socket == nullptr) {
    ADD_FAILURE() << "MUSTER_DOCKER_SOCKET names no engine: run this by tests/containers_client.py";
    return "/nonexistent";
  }
  return socket;
}

/// The address for the client.
inline Endpoint endpoint_of_engine() {
  const char* const tls = std::getenv("MUSTER_DOCKER_TLS");
  const char* const certificates = std::getenv("DOCKER_CERT_PATH");
  if (tls == nullptr || certificates == nullptr) return UnixEndpoint{socket_of_engine()};
  const auto endpoint = parse_endpoint(tls, certificates);
  EXPECT_TRUE(endpoint) << endpoint.error().to_string();
  return endpoint ? *endpoint : UnixEndpoint{"/nonexistent"};
}

inline std::string content_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline workspace::ArchiveEntry file(std::string path, std::string content, mode_t mode,
                                    uid_t owner = 0) {
  return {.path = std::move(path),
          .content = std::move(content),
          .mode = mode,
          .uid = owner,
          .gid = owner,
          .link = {}};
}

inline workspace::ArchiveEntry folder(std::string path, mode_t mode, uid_t owner = 0) {
  return {.path = std::move(path),
          .content = {},
          .mode = mode,
          .is_folder = true,
          .uid = owner,
          .gid = owner,
          .link = {}};
}

/// The image: one program, and an account.
inline std::string root_of_image() {
  return workspace::make_archive(
      {file("program", content_of(MUSTER_TEST_PROGRAM), 0755), folder("etc", 0755),
       file("etc/passwd", "root:x:0:0::/:/program\nann:x:1000:1000::/:/program\n", 0644),
       folder("tmp", 01777), folder("home", 0755)});
}

inline std::string bytes_of(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + (i >> 8U));
  return bytes;
}

class DockerClientPodman : public testing::Test {
 protected:
  DockerClientPodman() : client_(loop_.loop(), endpoint_of_engine()) {
    static const bool kHasImage = import_image();
    EXPECT_TRUE(kHasImage);
  }

  void TearDown() override {
    const auto left = list();
    if (left) {
      for (const ContainerState& one : *left) EXPECT_TRUE(remove(one.id));
    }
    for (const std::string& name : networks_) {
      EXPECT_TRUE(done([&](auto then) { client_.remove_network(name, then); }));
    }
    for (const std::string& name : volumes_) {
      EXPECT_TRUE(done([&](auto then) { client_.remove_volume(name, then); }));
    }
  }

  /// By Docker's request to import a tar, which Podman also supports.
  bool import_image() {
    http::AsyncClient http(loop_.loop(), std::filesystem::path(socket_of_engine()), "the engine");
    http::AsyncCall call;
    const auto answer = loop_.answer<http::Response>([&](auto then) {
      call =
          http.send({.method = "POST",
                     .target = "/v1.40/images/create?fromSrc=-&repo=muster-client-test&tag=latest"
                               "&changes=ENV%20GREETING%3Dhello&changes=WORKDIR%20%2Fhome"
                               "&changes=CMD%20%5B%22%2Fprogram%22%5D",
                     .headers = {{"content-type", "application/x-tar"}},
                     .body = root_of_image()},
                    {}, then);
    });
    EXPECT_TRUE(answer) << answer.error().to_string();
    if (!answer) return false;
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->status == 200;
  }

  template <class Call>
  Result<void> done(Call call) {
    return loop_.answer<void>([&](auto then) { call(std::move(then)); });
  }

  static ContainerConfig config(std::string name, std::vector<std::string> program) {
    ContainerConfig config{.name = "muster-client-test-" + std::move(name), .image = kImage};
    config.entrypoint = std::move(program);
    config.labels = kLabels;
    config.network = "host";
    config.capabilities = {"CHOWN"};
    return config;
  }

  std::string create(const ContainerConfig& settings) {
    const auto id =
        loop_.answer<std::string>([&](auto then) { client_.create(settings, std::move(then)); });
    EXPECT_TRUE(id) << id.error().to_string();
    return id ? *id : "";
  }
  Result<void> start(const std::string& id) {
    return done([&](auto then) { client_.start(id, then); });
  }
  Result<void> remove(const std::string& id) {
    return done([&](auto then) { client_.remove(id, then); });
  }
  Result<ContainerState> inspect(const std::string& id) {
    return loop_.answer<ContainerState>([&](auto then) { client_.inspect(id, std::move(then)); });
  }
  /// A stream may end a moment before the engine has noticed the end of the program.
  Result<ContainerState> state_at_end(const std::string& id) {
    auto state = inspect(id);
    while (state && state->state != "exited") state = inspect(id);
    return state;
  }
  Result<std::vector<ContainerState>> list() {
    return loop_.answer<std::vector<ContainerState>>(
        [&](auto then) { client_.list(kFilter, std::move(then)); });
  }
  Result<void> put(const std::string& id, const std::string& where,
                   const std::vector<workspace::ArchiveEntry>& entries) {
    return done(
        [&](auto then) { client_.put_archive(id, where, workspace::make_archive(entries), then); });
  }
  Result<PathFacts> stat(const std::string& id, const std::string& path) {
    return loop_.answer<PathFacts>([&](auto then) { client_.stat(id, path, std::move(then)); });
  }

  Result<void> attach(const std::string& id, RecordedStream& recorded) {
    auto stream = loop_.answer<std::unique_ptr<DockerStream>>(
        [&](auto then) { client_.attach(id, false, listen_by(loop_, recorded), std::move(then)); });
    if (!stream) return stream.error();
    recorded.stream = *std::move(stream);
    return {};
  }

  /// Runs a container to its end.
  RecordedStream run(const ContainerConfig& settings) {
    RecordedStream recorded;
    const std::string id = create(settings);
    EXPECT_TRUE(attach(id, recorded));
    EXPECT_TRUE(start(id));
    EXPECT_TRUE(loop_.run_until([&] { return recorded.ended; }));
    recorded.stream.reset();
    EXPECT_TRUE(state_at_end(id));
    return recorded;
  }

  struct Executed {
    std::string id;
    RecordedStream recorded;
  };
  void execute(Executed& executed, const std::string& container, const DockerExec& exec) {
    const auto id = loop_.answer<std::string>(
        [&](auto then) { client_.create_exec(container, exec, std::move(then)); });
    ASSERT_TRUE(id) << id.error().to_string();
    executed.id = *id;
    auto stream = loop_.answer<std::unique_ptr<DockerStream>>([&](auto then) {
      client_.start_exec(*id, exec.terminal, listen_by(loop_, executed.recorded), std::move(then));
    });
    ASSERT_TRUE(stream) << stream.error().to_string();
    executed.recorded.stream = *std::move(stream);
  }
  void wait_for_end(Executed& executed) {
    EXPECT_TRUE(loop_.run_until([&] { return executed.recorded.ended; }));
  }
  DockerExit exit_of(const Executed& executed) {
    const auto exit = loop_.answer<DockerExit>(
        [&](auto then) { client_.inspect_exec(executed.id, std::move(then)); });
    EXPECT_TRUE(exit) << exit.error().to_string();
    return exit ? *exit : DockerExit{.running = true};
  }

  /// A container whose program runs and has printed that it waits.
  std::string start_waiting(const std::string& name) {
    RecordedStream recorded;
    ContainerConfig settings = config(name, {"/program", "wait"});
    settings.mounts = {{.source = "", .target = "/data"}};
    const std::string id = create(settings);
    EXPECT_TRUE(attach(id, recorded));
    EXPECT_TRUE(start(id));
    EXPECT_TRUE(loop_.run_until([&] { return recorded.output == "ready\n"; }));
    return id;
  }

  DockerInfo info() {
    const auto info = loop_.answer<DockerInfo>([&](auto then) { client_.info(std::move(then)); });
    EXPECT_TRUE(info) << info.error().to_string();
    return info ? *info : DockerInfo();
  }

  base::TestLoop loop_;
  DockerClient client_;
  std::vector<std::string> networks_;
  std::vector<std::string> volumes_;
};

}  // namespace muster::engine
