// Every call of the client against a real engine, Podman or Docker: the one whose socket
// MUSTER_DOCKER_SOCKET names, by that or by TLS where MUSTER_DOCKER_TLS says where. It brings its
// own image and removes all that it makes. tests/containers_client.py starts engines for it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "engine/container/test_docker.h"
#include "http/async_client.h"
#include "workspace/small_archive.h"

namespace muster::engine {
namespace {

using base::ErrorCode;
using workspace::ArchiveEntry;

constexpr const char* kImage = "muster-client-test:latest";
constexpr const char* kLabel = "org.muster.client-test";
const std::map<std::string, std::string> kLabels{{kLabel, "1"}, {"other", "a=b"}};
const std::vector<std::string> kFilter{std::string(kLabel) + "=1"};

std::string socket_of_engine() {
  const char* const socket = std::getenv("MUSTER_DOCKER_SOCKET");
  if (socket == nullptr) {
    ADD_FAILURE() << "MUSTER_DOCKER_SOCKET names no engine: run this by tests/containers_client.py";
    return "/nonexistent";
  }
  return socket;
}

/// Where the client finds it.
Endpoint endpoint_of_engine() {
  const char* const tls = std::getenv("MUSTER_DOCKER_TLS");
  const char* const certificates = std::getenv("DOCKER_CERT_PATH");
  if (tls == nullptr || certificates == nullptr) return UnixEndpoint{socket_of_engine()};
  const auto endpoint = parse_endpoint(tls, certificates);
  EXPECT_TRUE(endpoint) << endpoint.error().to_string();
  return endpoint ? *endpoint : UnixEndpoint{"/nonexistent"};
}

std::string content_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ArchiveEntry file(std::string path, std::string content, mode_t mode, uid_t owner = 0) {
  return {.path = std::move(path),
          .content = std::move(content),
          .mode = mode,
          .uid = owner,
          .gid = owner,
          .link = {}};
}

ArchiveEntry folder(std::string path, mode_t mode, uid_t owner = 0) {
  return {.path = std::move(path),
          .content = {},
          .mode = mode,
          .is_folder = true,
          .uid = owner,
          .gid = owner,
          .link = {}};
}

/// The image: one program, and an account.
std::string root_of_image() {
  return workspace::make_archive(
      {file("program", content_of(MUSTER_TEST_PROGRAM), 0755), folder("etc", 0755),
       file("etc/passwd", "root:x:0:0::/:/program\nann:x:1000:1000::/:/program\n", 0644),
       folder("tmp", 01777), folder("home", 0755)});
}

std::string actions_of(const std::vector<DockerEvent>& events) {
  std::string actions;
  for (const DockerEvent& event : events) actions += event.action + " ";
  return actions;
}

std::string bytes_of(size_t size) {
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

  /// By Docker's way of making one of a tar: Podman knows it, too.
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

  std::string create(const ContainerConfig& wanted) {
    const auto id =
        loop_.answer<std::string>([&](auto then) { client_.create(wanted, std::move(then)); });
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
  /// A stream may end a moment before the engine has seen the program's end.
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
                   const std::vector<ArchiveEntry>& entries) {
    return done(
        [&](auto then) { client_.put_archive(id, where, workspace::make_archive(entries), then); });
  }
  Result<PathFacts> stat(const std::string& id, const std::string& path) {
    return loop_.answer<PathFacts>([&](auto then) { client_.stat(id, path, std::move(then)); });
  }

  Result<void> attach(const std::string& id, Heard& heard) {
    auto stream = loop_.answer<std::unique_ptr<DockerStream>>(
        [&](auto then) { client_.attach(id, false, listen_by(loop_, heard), std::move(then)); });
    if (!stream) return stream.error();
    heard.stream = *std::move(stream);
    return {};
  }

  /// Runs a container to its end.
  Heard run(const ContainerConfig& wanted) {
    Heard heard;
    const std::string id = create(wanted);
    EXPECT_TRUE(attach(id, heard));
    EXPECT_TRUE(start(id));
    EXPECT_TRUE(loop_.run_until([&] { return heard.ended; }));
    heard.stream.reset();
    EXPECT_TRUE(state_at_end(id));
    return heard;
  }

  struct Executed {
    std::string id;
    Heard heard;
  };
  void execute(Executed& executed, const std::string& container, const DockerExec& exec) {
    const auto id = loop_.answer<std::string>(
        [&](auto then) { client_.create_exec(container, exec, std::move(then)); });
    ASSERT_TRUE(id) << id.error().to_string();
    executed.id = *id;
    auto stream = loop_.answer<std::unique_ptr<DockerStream>>([&](auto then) {
      client_.start_exec(*id, exec.terminal, listen_by(loop_, executed.heard), std::move(then));
    });
    ASSERT_TRUE(stream) << stream.error().to_string();
    executed.heard.stream = *std::move(stream);
  }
  void wait_for_end(Executed& executed) {
    EXPECT_TRUE(loop_.run_until([&] { return executed.heard.ended; }));
  }
  DockerExit exit_of(const Executed& executed) {
    const auto exit = loop_.answer<DockerExit>(
        [&](auto then) { client_.inspect_exec(executed.id, std::move(then)); });
    EXPECT_TRUE(exit) << exit.error().to_string();
    return exit ? *exit : DockerExit{.running = true};
  }

  /// A container whose program waits, and has said so.
  std::string start_waiting(const std::string& name) {
    Heard heard;
    ContainerConfig wanted = config(name, {"/program", "wait"});
    wanted.mounts = {{.source = "", .target = "/data"}};
    const std::string id = create(wanted);
    EXPECT_TRUE(attach(id, heard));
    EXPECT_TRUE(start(id));
    EXPECT_TRUE(loop_.run_until([&] { return heard.output == "ready\n"; }));
    return id;
  }

  DockerInfo info() {
    const auto info = loop_.answer<DockerInfo>([&](auto then) { client_.info(std::move(then)); });
    EXPECT_TRUE(info) << info.error().to_string();
    return info ? *info : DockerInfo();
  }

  LoopOfTest loop_;
  DockerClient client_;
  std::vector<std::string> networks_;
  std::vector<std::string> volumes_;
};

TEST_F(DockerClientPodman, TheEngineSaysWhatItIsAndWhatItsHostHas) {
  const DockerInfo found = info();

  EXPECT_TRUE(found.api_version.starts_with("1.4") || found.api_version.starts_with("1.5"))
      << found.api_version;
  EXPECT_FALSE(found.version.empty());
  EXPECT_EQ(found.os, "linux");
  EXPECT_TRUE(found.architecture == "amd64" || found.architecture == "arm64") << found.architecture;
  EXPECT_FALSE(found.host_name.empty());
  EXPECT_GT(found.cpus, 0);
  EXPECT_GT(found.memory_bytes, 100 << 20);
}

TEST_F(DockerClientPodman, AnImageIsLookedInto) {
  const auto image =
      loop_.answer<DockerImage>([&](auto then) { client_.inspect_image(kImage, std::move(then)); });

  ASSERT_TRUE(image) << image.error().to_string();
  EXPECT_FALSE(image->id.empty());
  EXPECT_EQ(image->architecture, info().architecture);
  EXPECT_EQ(image->folder, "/home");
  EXPECT_EQ(image->command, std::vector<std::string>{"/program"});
  EXPECT_TRUE(image->entrypoint.empty());
  EXPECT_NE(std::find(image->environment.begin(), image->environment.end(), "GREETING=hello"),
            image->environment.end());
}

TEST_F(DockerClientPodman, AnImageThatIsNotThereIsNotFound) {
  const auto image = loop_.answer<DockerImage>(
      [&](auto then) { client_.inspect_image("nowhere/team/nothing:1", std::move(then)); });

  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kNotFound);
  EXPECT_NE(image.error().what.find("nowhere/team/nothing:1"), std::string::npos);
  EXPECT_NE(image.error().what.find("(the engine at " + to_string(client_.endpoint()) + ")"),
            std::string::npos);
}

TEST_F(DockerClientPodman, APullFromARegistryThatNobodyServesFailsAndSaysSo) {
  std::shared_ptr<void> pull;
  const auto pulled = done([&](auto then) {
    pull = client_.pull("127.0.0.1:1/nothing:1", {}, [](const PullProgress&) {}, then);
  });

  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::kUnavailable) << pulled.error().to_string();
  EXPECT_NE(pulled.error().what.find("connection refused"), std::string::npos)
      << pulled.error().what;
}

TEST_F(DockerClientPodman, AnImageIsPulledWithCredentialsAndNotWithout) {
  const char* const image = std::getenv("MUSTER_TEST_REGISTRY_IMAGE");
  const char* const user = std::getenv("MUSTER_TEST_REGISTRY_USER");
  const char* const password = std::getenv("MUSTER_TEST_REGISTRY_PASSWORD");
  ASSERT_TRUE(image != nullptr && user != nullptr && password != nullptr);
  const std::string server = std::string(image).substr(0, std::string(image).find('/'));
  std::shared_ptr<void> pull;

  const auto refused =
      done([&](auto then) { pull = client_.pull(image, {}, [](const PullProgress&) {}, then); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused) << refused.error().to_string();

  const auto missing = done([&](auto then) {
    pull = client_.pull(
        server + "/no/such:9", {.server = server, .username = user, .password = password},
        [](const PullProgress&) {}, then);
  });
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound) << missing.error().to_string();

  std::vector<PullProgress> told;
  const auto pulled = done([&](auto then) {
    pull = client_.pull(
        image, {.server = server, .username = user, .password = password},
        [&](const PullProgress& progress) { told.push_back(progress); }, then);
  });
  ASSERT_TRUE(pulled) << pulled.error().to_string();
  EXPECT_FALSE(told.empty());
  EXPECT_TRUE(
      loop_.answer<DockerImage>([&](auto then) { client_.inspect_image(image, std::move(then)); }));
}

TEST_F(DockerClientPodman, AContainerRunsToItsEndAndNothingOfItIsMissed) {
  Heard heard;
  const std::string id = create(config("whole", {"/program", "print", "to out\n", "to err\n"}));
  ASSERT_TRUE(attach(id, heard));
  const auto before = inspect(id);
  ASSERT_TRUE(before) << before.error().to_string();
  EXPECT_EQ(before->state, "created");
  EXPECT_FALSE(before->finished);

  ASSERT_TRUE(start(id));
  ASSERT_TRUE(loop_.run_until([&] { return heard.ended; }));

  EXPECT_EQ(heard.output, "to out\n");
  EXPECT_EQ(heard.error, "to err\n");
  const auto after = state_at_end(id);
  ASSERT_TRUE(after) << after.error().to_string();
  EXPECT_EQ(after->id, id);
  EXPECT_EQ(after->name, "muster-client-test-whole");
  EXPECT_EQ(after->state, "exited");
  EXPECT_EQ(after->exit_code, 0);
  EXPECT_TRUE(after->finished);
  EXPECT_EQ(after->labels.at("other"), "a=b");
}

TEST_F(DockerClientPodman, TwentyMegabytesGoInAndOutUnchanged) {
  ContainerConfig wanted = config("cat", {"/program", "cat"});
  wanted.open_input = true;
  Heard heard;
  const std::string id = create(wanted);
  ASSERT_TRUE(attach(id, heard));
  ASSERT_TRUE(start(id));
  const std::string bytes = bytes_of(20 << 20);

  heard.stream->write(bytes);
  heard.stream->close_input();

  ASSERT_TRUE(loop_.run_until([&] { return heard.ended; }));
  EXPECT_TRUE(heard.output == bytes) << heard.output.size() << " bytes came back";
  EXPECT_EQ(heard.stream->waiting(), 0U);
}

TEST_F(DockerClientPodman, OutputWaitsForAReaderThatIsBehind) {
  ContainerConfig wanted = config("pause", {"/program", "cat"});
  wanted.open_input = true;
  Heard heard;
  const std::string id = create(wanted);
  ASSERT_TRUE(attach(id, heard));
  ASSERT_TRUE(start(id));
  heard.stream->write("first");
  ASSERT_TRUE(loop_.run_until([&] { return heard.output == "first"; }));

  heard.stream->pause(true);
  const std::string bytes = bytes_of(16 << 20);
  heard.stream->write(bytes);
  heard.stream->close_input();
  ASSERT_TRUE(inspect(id));  // the loop has run meanwhile
  EXPECT_EQ(heard.output, "first");
  EXPECT_GT(heard.stream->waiting(), 0U);

  heard.stream->pause(false);
  ASSERT_TRUE(loop_.run_until([&] { return heard.ended; }));
  EXPECT_EQ(heard.output.size(), bytes.size() + 5);
}

TEST_F(DockerClientPodman, ToAContainerThatHasEndedNobodyIsAttached) {
  const ContainerConfig wanted = config("ended", {"/program", "exit", "3"});
  run(wanted);
  Heard heard;

  const auto attached = attach(wanted.name, heard);

  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, ErrorCode::kConflict);
  const auto state = inspect(wanted.name);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->state, "exited");
  EXPECT_EQ(state->exit_code, 3);
}

TEST_F(DockerClientPodman, ANameIsTakenOnce) {
  const ContainerConfig wanted = config("twice", {"/program", "wait"});
  create(wanted);

  const auto again =
      loop_.answer<std::string>([&](auto then) { client_.create(wanted, std::move(then)); });

  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict) << again.error().to_string();
}

TEST_F(DockerClientPodman, AContainerOfAnImageThatIsMissingIsNotMade) {
  ContainerConfig wanted = config("no-image", {"/program"});
  wanted.image = "nowhere/nothing:1";

  const auto made =
      loop_.answer<std::string>([&](auto then) { client_.create(wanted, std::move(then)); });

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kNotFound) << made.error().to_string();
}

TEST_F(DockerClientPodman, AProgramThatIsNotThereCannotBeStarted) {
  const std::string id = create(config("no-program", {"/nothing"}));

  const auto started = start(id);

  ASSERT_FALSE(started);
  EXPECT_NE(started.error().what.find("/nothing"), std::string::npos) << started.error().what;
}

TEST_F(DockerClientPodman, StartingOneThatRunsIsNoError) {
  const std::string id = start_waiting("started-twice");
  EXPECT_TRUE(start(id));
}

TEST_F(DockerClientPodman, ASignalReachesTheProgramAndAnEndedOneHasNone) {
  const std::string id = start_waiting("signal");
  Heard heard;
  ASSERT_TRUE(attach(id, heard));

  EXPECT_TRUE(done([&](auto then) { client_.kill(id, "TERM", then); }));
  ASSERT_TRUE(loop_.run_until([&] { return heard.ended; }));
  const auto state = state_at_end(id);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->exit_code, 15);

  const auto again = done([&](auto then) { client_.kill(id, "TERM", then); });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict) << again.error().to_string();
}

TEST_F(DockerClientPodman, WhatIsGoneIsRemovedAndIsNotFound) {
  const std::string id = start_waiting("removed");

  EXPECT_TRUE(remove(id));

  EXPECT_TRUE(remove(id));
  const auto state = inspect(id);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::kNotFound);
  const auto started = start(id);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kNotFound);
}

TEST_F(DockerClientPodman, ContainersAreFoundByTheirLabels) {
  const std::string id = create(config("listed", {"/program", "wait"}));
  ContainerConfig other = config("other", {"/program", "wait"});
  other.labels = {{kLabel, "2"}};
  const std::string other_id = create(other);

  const auto found = list();
  EXPECT_TRUE(remove(other_id));

  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().id, id);
  EXPECT_EQ(found->front().name, "muster-client-test-listed");
  EXPECT_EQ(found->front().state, "created");
  EXPECT_EQ(found->front().labels.at(kLabel), "1");
}

TEST_F(DockerClientPodman, FilesArePutIntoAContainerThatHasNotStarted) {
  ContainerConfig wanted = config("files", {"/muster/bin/program", "stat", "/muster/task/plan"});
  wanted.user = "1000:1000";
  wanted.read_only_root = true;
  wanted.mounts = {{.source = "", .target = "/muster"}};
  const std::string id = create(wanted);
  ASSERT_TRUE(put(id, "/muster",
                  {folder("bin", 0755), file("bin/program", content_of(MUSTER_TEST_PROGRAM), 0755),
                   folder("task", 0700, 1000), file("task/plan", "secret", 0600, 1000)}));
  Heard heard;
  ASSERT_TRUE(attach(id, heard));

  ASSERT_TRUE(start(id));

  ASSERT_TRUE(loop_.run_until([&] { return heard.ended; }));
  EXPECT_EQ(heard.output, "0600 1000:1000 f");
}

TEST_F(DockerClientPodman, ALargeTarGoesInAndOutInPieces) {
  const std::string id = start_waiting("pieces");
  const std::string content = bytes_of(12 << 20);
  const std::string tar = workspace::make_archive({file("large", content, 0644)});
  size_t sent = 0;

  ASSERT_TRUE(done([&](auto then) {
    client_.put_archive(
        id, "/data",
        [&]() -> Result<std::string> {
          std::string piece = tar.substr(sent, 100'000);
          sent += piece.size();
          return piece;
        },
        then);
  }));
  std::string back;
  size_t pieces = 0;
  std::shared_ptr<void> fetch;
  ASSERT_TRUE(done([&](auto then) {
    fetch = client_.get_archive(
        id, "/data/large",
        [&](std::string_view piece) {
          back += piece;
          ++pieces;
        },
        then);
  }));

  EXPECT_GT(pieces, 10U);
  const auto entries = workspace::read_archive(back, content.size());
  ASSERT_TRUE(entries) << entries.error().to_string();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().path, "large");
  EXPECT_TRUE(entries->front().content == content);
}

TEST_F(DockerClientPodman, AnUploadWhoseSourceFailsFailsWithItsReason) {
  const std::string id = start_waiting("source");

  const auto put = done([&](auto then) {
    client_.put_archive(
        id, "/data",
        []() -> Result<std::string> {
          return base::Error{.code = ErrorCode::kExhausted, .what = "the source is broken"};
        },
        then);
  });

  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().what, "the source is broken");
}

TEST_F(DockerClientPodman, PathsAreLookedAt) {
  const std::string id = start_waiting("stat");
  ArchiveEntry link = file("link", "", 0777);
  link.link = "/data/plain";
  ASSERT_TRUE(put(id, "/data", {file("plain", "12345", 0640), folder("folder", 01777), link}));

  const auto plain = stat(id, "/data/plain");
  ASSERT_TRUE(plain) << plain.error().to_string();
  EXPECT_EQ(plain->name, "plain");
  EXPECT_EQ(plain->size, 5);
  EXPECT_EQ(plain->mode, 0640U);
  EXPECT_FALSE(plain->is_folder);
  const auto inner = stat(id, "/data/folder");
  ASSERT_TRUE(inner) << inner.error().to_string();
  EXPECT_TRUE(inner->is_folder);
  EXPECT_EQ(inner->mode, 01777U);
  const auto linked = stat(id, "/data/link");
  ASSERT_TRUE(linked) << linked.error().to_string();
  EXPECT_EQ(linked->link, "/data/plain");

  const auto missing = stat(id, "/data/no such\xe2\x82\xac&x=y");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound) << missing.error().to_string();
  std::shared_ptr<void> fetch;
  const auto fetched = done(
      [&](auto then) { fetch = client_.get_archive(id, "/nothing", [](auto) { FAIL(); }, then); });
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().code, ErrorCode::kNotFound) << fetched.error().to_string();
}

TEST_F(DockerClientPodman, CommandsRunInAContainerAndEndTruly) {
  const std::string id = start_waiting("exec");
  Executed printing;
  execute(printing, id, {.argv = {"/program", "print", "o", "e"}});
  wait_for_end(printing);
  EXPECT_EQ(printing.heard.output, "o");
  EXPECT_EQ(printing.heard.error, "e");
  EXPECT_EQ(exit_of(printing).code, 0);
  EXPECT_FALSE(exit_of(printing).running);

  Executed failing;
  execute(failing, id, {.argv = {"/program", "exit", "42"}});
  wait_for_end(failing);
  EXPECT_EQ(exit_of(failing).code, 42);

  Executed named;
  execute(named, id,
          {.argv = {"/program", "show", "NAME"}, .environment = {"NAME=va l\"ue"}, .user = "ann"});
  wait_for_end(named);
  EXPECT_EQ(named.heard.output, "va l\"ue");
}

TEST_F(DockerClientPodman, TheInputOfACommandEndsAndItsOutputGoesOn) {
  const std::string id = start_waiting("exec-cat");
  const std::string bytes = bytes_of(8 << 20);
  Executed cat;
  execute(cat, id, {.argv = {"/program", "cat"}});

  cat.heard.stream->write(bytes);
  cat.heard.stream->close_input();

  wait_for_end(cat);
  EXPECT_TRUE(cat.heard.output == bytes) << cat.heard.output.size();
  EXPECT_EQ(exit_of(cat).code, 0);
}

TEST_F(DockerClientPodman, ATerminalComesWithoutFramesAndHasASize) {
  const std::string id = start_waiting("terminal");
  Executed terminal;
  execute(terminal, id, {.argv = {"/program", "cat"}, .terminal = true});
  ASSERT_TRUE(done([&](auto then) { client_.resize_exec(terminal.id, 40, 100, then); }));

  terminal.heard.stream->write("hello\n\x04");

  wait_for_end(terminal);
  EXPECT_EQ(terminal.heard.output, "hello\r\nhello\r\n");
}

TEST_F(DockerClientPodman, InAContainerThatDoesNotRunNoCommandDoes) {
  const ContainerConfig wanted = config("exec-ended", {"/program", "exit", "0"});
  run(wanted);

  const auto id = loop_.answer<std::string>([&](auto then) {
    client_.create_exec(wanted.name, {.argv = {"/program", "cat"}}, std::move(then));
  });

  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kConflict) << id.error().to_string();
}

TEST_F(DockerClientPodman, ContainersAreAsStrictAsTheyAreAskedToBe) {
  const auto run_as = [&](const std::string& name, std::vector<std::string> program) {
    ContainerConfig wanted = config("strict-" + name, std::move(program));
    wanted.read_only_root = true;
    wanted.hostname = "strict";
    wanted.user = "1000:1000";
    wanted.memory_bytes = 64 << 20;
    wanted.cpu_milli = 500;
    wanted.shm_bytes = 32 << 20;
    wanted.mounts = {{.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"}};
    wanted.extra_hosts = {{"friend", "10.1.2.3"}};
    const Heard heard = run(wanted);
    const auto state = inspect(wanted.name);
    return std::pair(state ? state->exit_code : -1, heard.output);
  };

  const auto [code, capabilities] = run_as("capabilities", {"/program", "capabilities"});
  EXPECT_EQ(code, 0);
  EXPECT_NE(capabilities.find("NoNewPrivs:\t1"), std::string::npos) << capabilities;
  EXPECT_EQ(run_as("root", {"/program", "write", "/home/new"}).first, 1);
  EXPECT_EQ(run_as("tmp", {"/program", "write", "/tmp/new"}).first, 0);
  EXPECT_EQ(run_as("tmp-mode", {"/program", "stat", "/tmp"}).second, "1777 0:0 d");
}

TEST_F(DockerClientPodman, AGangHasANetworkOfItsOwn) {
  const std::string name = "muster-client-test-net";
  networks_.push_back(name);
  const auto id = loop_.answer<std::string>(
      [&](auto then) { client_.create_network(name, kLabels, std::move(then)); });
  ASSERT_TRUE(id) << id.error().to_string();
  const auto again = loop_.answer<std::string>(
      [&](auto then) { client_.create_network(name, kLabels, std::move(then)); });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict) << again.error().to_string();
  using Named = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
  const auto found =
      loop_.answer<Named>([&](auto then) { client_.networks(kFilter, std::move(then)); });
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().first, name);
  EXPECT_EQ(found->front().second.at(kLabel), "1");

  ContainerConfig wanted = config("on-net", {"/program", "wait"});
  wanted.network = name;
  wanted.hostname = "worker-0";
  wanted.aliases = {"worker-0"};
  const std::string container = create(wanted);
  ASSERT_TRUE(start(container));
  const auto busy = done([&](auto then) { client_.remove_network(name, then); });
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kConflict) << busy.error().to_string();

  ASSERT_TRUE(remove(container));
  EXPECT_TRUE(done([&](auto then) { client_.remove_network(name, then); }));
  EXPECT_TRUE(done([&](auto then) { client_.remove_network(name, then); }));
}

TEST_F(DockerClientPodman, AVolumeOutlivesItsContainers) {
  const std::string name = "muster-client-test-volume";
  volumes_.push_back(name);
  ASSERT_TRUE(done([&](auto then) { client_.create_volume(name, kLabels, then); }));
  EXPECT_TRUE(done([&](auto then) { client_.create_volume(name, kLabels, then); }));
  ContainerConfig writer = config("writer", {"/program", "exit", "0"});
  writer.mounts = {{.source = name, .target = "/shared"}};
  const std::string first = create(writer);
  ASSERT_TRUE(put(first, "/shared", {file("kept", "12", 0604)}));
  const auto busy = done([&](auto then) { client_.remove_volume(name, then); });
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kConflict) << busy.error().to_string();
  ASSERT_TRUE(remove(first));

  ContainerConfig reader = config("reader", {"/program", "stat", "/shared/kept"});
  reader.mounts = {{.source = name, .target = "/shared", .read_only = true}};
  EXPECT_EQ(run(reader).output, "0604 0:0 f");
  ContainerConfig intruder = config("intruder", {"/program", "write", "/shared/new"});
  intruder.mounts = reader.mounts;
  run(intruder);
  EXPECT_EQ(inspect(intruder.name)->exit_code, 1);

  using Named = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
  const auto found =
      loop_.answer<Named>([&](auto then) { client_.volumes(kFilter, std::move(then)); });
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().first, name);
  ASSERT_TRUE(remove(reader.name));
  ASSERT_TRUE(remove(intruder.name));
  EXPECT_TRUE(done([&](auto then) { client_.remove_volume(name, then); }));
  EXPECT_TRUE(done([&](auto then) { client_.remove_volume(name, then); }));
}

TEST_F(DockerClientPodman, WhatHappensToOurContainersIsHeardAsItHappens) {
  std::vector<DockerEvent> heard;
  std::optional<base::Error> broken;
  bool open = false;
  auto events = client_.events(
      kFilter,
      [&](const DockerEvent& event) {
        heard.push_back(event);
        loop_.look();
      },
      [&](base::Error error) {
        broken = std::move(error);
        loop_.look();
      },
      [&] {
        open = true;
        loop_.look();
      });
  ASSERT_TRUE(loop_.run_until([&] { return open || broken; }));
  ASSERT_FALSE(broken) << broken->to_string();

  const ContainerConfig wanted = config("event", {"/program", "exit", "7"});
  const std::string id = create(wanted);
  ASSERT_TRUE(start(id));
  // Of this second also those of tests before are told.
  const auto is_end = [&](const DockerEvent& event) {
    return event.action == "die" && event.id == id;
  };
  ASSERT_TRUE(loop_.run_until([&] {
    return std::any_of(heard.begin(), heard.end(), is_end) || broken.has_value();
  })) << "heard: "
      << actions_of(heard);

  const auto end = std::find_if(heard.begin(), heard.end(), is_end);
  ASSERT_NE(end, heard.end());
  EXPECT_EQ(end->attributes.at("exitCode"), "7");
  EXPECT_EQ(end->attributes.at(kLabel), "1");
  EXPECT_TRUE(remove(id));
  const auto is_gone = [&](const DockerEvent& event) {
    return event.action == "destroy" && event.id == id;
  };
  EXPECT_TRUE(loop_.run_until([&] { return std::any_of(heard.begin(), heard.end(), is_gone); }));
  EXPECT_FALSE(broken);
}

TEST_F(DockerClientPodman, GpusThatTheHostDoesNotHaveAreNotLeftOutInSilence) {
  ContainerConfig wanted = config("gpus", {"/program", "show", "GREETING"});
  wanted.gpus = {"77"};
  wanted.environment = {"A=b"};
  wanted.mounts = {{.source = "", .target = "/muster"},
                   {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"}};
  wanted.memory_bytes = 64 << 20;
  wanted.cpu_milli = 500;
  wanted.shm_bytes = 32 << 20;
  wanted.extra_hosts = {{"friend", "10.1.2.3"}};
  const std::string id = create(wanted);

  const auto started = start(id);

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kInvalid) << started.error().to_string();
}

TEST_F(DockerClientPodman, AGpuIsGivenByItsCdiNameAndAllElseAsItIs) {
  networks_.push_back("muster-client-test-gpu");
  volumes_.push_back("muster-client-test-gpu");
  ASSERT_TRUE(loop_.answer<std::string>([&](auto then) {
    client_.create_network("muster-client-test-gpu", kLabels, std::move(then));
  }));
  ASSERT_TRUE(
      done([&](auto then) { client_.create_volume("muster-client-test-gpu", kLabels, then); }));
  const auto run_as = [&](const std::string& name, std::vector<std::string> program) {
    ContainerConfig wanted = config("gpu-" + name, std::move(program));
    wanted.gpus = {"0"};
    wanted.network = "muster-client-test-gpu";
    wanted.aliases = {"worker-0"};
    wanted.hostname = "worker-0";
    wanted.user = "1000:1000";
    wanted.environment = {"NAME=a=b c"};
    wanted.folder = "/tmp";
    wanted.memory_bytes = 64 << 20;
    wanted.cpu_milli = 500;
    wanted.shm_bytes = 32 << 20;
    wanted.read_only_root = true;
    wanted.open_input = true;
    wanted.mounts = {{.source = "", .target = "/muster"},
                     {.source = "muster-client-test-gpu", .target = "/shared", .read_only = true},
                     {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"}};
    wanted.extra_hosts = {{"friend", "10.1.2.3"}};
    Heard heard;
    const std::string id = create(wanted);
    EXPECT_TRUE(attach(id, heard));
    EXPECT_TRUE(start(id));
    heard.stream->write("input");
    heard.stream->close_input();
    EXPECT_TRUE(loop_.run_until([&] { return heard.ended; }));
    const auto state = state_at_end(id);
    EXPECT_TRUE(state && state->labels.contains(kLabel));
    return std::pair(state ? state->exit_code : -1, heard.output);
  };

  EXPECT_EQ(run_as("variable", {"/program", "show", "FAKE_GPU"}).second, "0");
  EXPECT_EQ(run_as("device", {"/program", "stat", "/dev/fakegpu0"}).first, 0);
  EXPECT_EQ(run_as("name", {"/program", "show", "NAME"}).second, "a=b c");
  EXPECT_EQ(run_as("input", {"/program", "cat"}).second, "input");
  EXPECT_NE(run_as("strict", {"/program", "capabilities"}).second.find("NoNewPrivs:\t1"),
            std::string::npos);
  EXPECT_EQ(run_as("root", {"/program", "write", "/home/new"}).first, 1);
  EXPECT_EQ(run_as("tmp", {"/program", "write", "/tmp/new"}).first, 0);
  EXPECT_EQ(run_as("shared", {"/program", "write", "/shared/new"}).first, 1);
}

}  // namespace
}  // namespace muster::engine
