// The client against a fake engine (test_fake_daemon.h), for behaviour that real engines do not
// show on request. docker_client_*podman_test.cc test the client with real engines.
#include "engine/container/docker_client.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"
#include "engine/container/test_docker.h"
#include "engine/container/test_fake_daemon.h"

namespace muster::engine {
namespace {

using base::Error;
using base::ErrorCode;
using std::chrono::milliseconds;

constexpr milliseconds kSoon{50};  ///< a limit that the test exceeds

using Script = FakeDaemon::Script;

class DockerClientTest : public testing::Test {
 protected:
  static std::string name_of(const FakeDaemon& daemon) {
    return "the engine at unix://" + daemon.socket().string();
  }

  Result<DockerInfo> info(DockerClient& client) {
    return loop_.answer<DockerInfo>([&](auto then) { client.info(std::move(then)); });
  }
  Result<ContainerState> inspect(DockerClient& client, const std::string& id = "x") {
    return loop_.answer<ContainerState>([&](auto then) { client.inspect(id, std::move(then)); });
  }
  Result<void> pull(DockerClient& client, const RegistryAccess& access = {}) {
    std::shared_ptr<void> held;
    return loop_.answer<void>([&](auto then) {
      held = client.pull("host:5000/team/image:1", access, {}, std::move(then));
    });
  }
  Result<std::unique_ptr<DockerStream>> start_exec(DockerClient& client, RecordedStream& recorded) {
    return loop_.answer<std::unique_ptr<DockerStream>>([&](auto then) {
      client.start_exec("e1", false, listen_by(loop_, recorded), std::move(then));
    });
  }

  base::TestLoop loop_;
};

#define CLIENT_OF(daemon, ...) \
  DockerClient client(loop_.loop(), UnixEndpoint{(daemon).socket()}, Patience{__VA_ARGS__})

// --- versions ---

TEST_F(DockerClientTest, UsesTheHighestVersionThatBothSupport) {
  for (const auto& [theirs, version] : std::vector<std::pair<std::string, std::string>>{
           {"1.40", "1.40"}, {"1.41", "1.41"}, {"1.99", "1.51"}}) {
    FakeDaemon daemon(
        {{"GET /_ping", FakeDaemon::sends(answer(200, "OK", "api-version: " + theirs + "\r\n"))}});
    CLIENT_OF(daemon);

    const auto found = info(client);

    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ(found->api_version, version);
    EXPECT_FALSE(found->is_podman);
    EXPECT_EQ(found->cpus, 4);
    EXPECT_TRUE(daemon.last_head().starts_with("GET /v" + version + "/info HTTP/1.1\r\n"))
        << daemon.last_head();
  }
}

TEST_F(DockerClientTest, RecognisesPodmanByItsAnswer) {
  FakeDaemon daemon(
      {{"GET /_ping", FakeDaemon::sends(answer(
                          200, "OK", "Api-Version: 1.41\r\nLibpod-Api-Version: 4.3.1\r\n"))}});
  CLIENT_OF(daemon);
  const auto found = info(client);
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_TRUE(found->is_podman);
}

TEST_F(DockerClientTest, RefusesAnEngineThatIsTooOld) {
  FakeDaemon daemon(
      {{"GET /_ping", FakeDaemon::sends(answer(200, "OK", "api-version: 1.38\r\n"))}});
  CLIENT_OF(daemon);

  const auto found = info(client);

  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(found.error().what, name_of(daemon) +
                                    " cannot be used: it supports the Docker Engine API up to "
                                    "version 1.38, and Muster requires version 1.40 or later");
  EXPECT_EQ(daemon.heads().size(), 1U);
}

TEST_F(DockerClientTest, RefusesAnotherProgram) {
  FakeDaemon daemon({{"GET /_ping", FakeDaemon::sends(answer(200, "<html>hello</html>"))}});
  CLIENT_OF(daemon);
  const auto found = info(client);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(found.error().what,
            name_of(daemon) + " cannot be used: it does not answer like Docker or Podman");
}

TEST_F(DockerClientTest, RequestsTheVersionOnceUntilInfo) {
  FakeDaemon daemon(
      {{"GET /containers/x/json",
        FakeDaemon::sends(answer(200, R"({"Id":"x","State":{"Status":"running"}})"))}});
  CLIENT_OF(daemon);
  int answered = 0;
  for (int i = 0; i < 5; ++i) {
    client.inspect("x", [&](const Result<ContainerState>& state) {
      EXPECT_TRUE(state);
      ++answered;
      loop_.look();
    });
  }
  ASSERT_TRUE(loop_.run_until([&] { return answered == 5; }));
  const auto pings = [&] {
    const auto heads = daemon.heads();
    return std::count_if(heads.begin(), heads.end(),
                         [](const std::string& head) { return head.starts_with("GET /_ping"); });
  };
  EXPECT_EQ(pings(), 1);
  ASSERT_TRUE(info(client));
  EXPECT_EQ(pings(), 2);
}

TEST_F(DockerClientTest, EveryCallFailsIfTheEngineCannotBeReached) {
  DockerClient client(loop_.loop(), UnixEndpoint{"/nonexistent/docker.sock"});
  const std::string what =
      "the engine at unix:///nonexistent/docker.sock cannot be reached: socket "
      "'/nonexistent/docker.sock' does not exist";
  const auto state = inspect(client);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(state.error().what, what);
  RecordedStream recorded;
  const auto stream = start_exec(client, recorded);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().what, what);
  std::optional<Error> broken;
  const auto events = client.events(
      {}, [](const DockerEvent&) { FAIL(); },
      [&](Error error) {
        broken = std::move(error);
        loop_.look();
      });
  ASSERT_TRUE(loop_.run_until([&] { return broken.has_value(); }));
  EXPECT_EQ(broken->what, what);
}

TEST_F(DockerClientTest, NamesTheEndpointBehindATunnel) {
  DockerClient client(loop_.loop(), SshEndpoint{.user = "ann", .host = "gpu1", .socket = "/s"},
                      UnixEndpoint{"/nonexistent/near.sock"});
  const auto state = inspect(client);
  ASSERT_FALSE(state);
  EXPECT_TRUE(state.error().what.starts_with("the engine at ssh://ann@gpu1/s cannot be reached"))
      << state.error().what;
}

TEST_F(DockerClientTest, NamesMissingCertificates) {
  const base::TestFolder folder;
  DockerClient client(
      loop_.loop(),
      TlsEndpointOfHost{.host = "127.0.0.1", .port = 1, .certificates = folder.path()});
  const auto state = inspect(client);
  ASSERT_FALSE(state);
  EXPECT_NE(state.error().what.find((folder / "ca.pem").string()), std::string::npos)
      << state.error().what;
}

// --- engines that hang, or send invalid answers ---

TEST_F(DockerClientTest, GivesUpAnEngineThatHangs) {
  FakeDaemon silent({{"GET /_ping", FakeDaemon::hangs()}});
  CLIENT_OF(silent, .answer = kSoon);
  const auto found = info(client);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(found.error().what, name_of(silent) + " does not answer within 50 ms");
}

TEST_F(DockerClientTest, GivesUpAnEngineThatHangsLater) {
  FakeDaemon daemon({{"GET /containers/x/json", FakeDaemon::hangs()},
                     {"POST /exec/e1/start", FakeDaemon::hangs()}});
  DockerClient client(loop_.loop(), UnixEndpoint{daemon.socket()},
                      Patience{.answer = milliseconds(500)});
  const auto state = inspect(client);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().what, name_of(daemon) + " does not answer within 500 ms");
  RecordedStream recorded;
  const auto stream = start_exec(client, recorded);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, ErrorCode::kUnavailable);
}

TEST_F(DockerClientTest, NamesTheEngineWhoseAnswerIsInvalid) {
  for (const std::string& bytes : {answer(200, "<html>"), answer(200, ""), answer(200, "{}"),
                                   answer(200, "{\"Id\":{}}"), std::string("garbage\r\n\r\n")}) {
    FakeDaemon daemon({{"GET /containers/x/json", FakeDaemon::sends(bytes)}});
    CLIENT_OF(daemon);
    const auto state = inspect(client);
    ASSERT_FALSE(state) << bytes;
    EXPECT_EQ(state.error().code, ErrorCode::kInternal) << state.error().what;
    EXPECT_NE(state.error().what.find(name_of(daemon)), std::string::npos) << state.error().what;
  }
}

TEST_F(DockerClientTest, ARefusalQuotesTheEngine) {
  FakeDaemon daemon(
      {{"GET /containers/x/json", FakeDaemon::sends(answer(403, R"({"message":"not for you"})"))}});
  CLIENT_OF(daemon);
  const auto state = inspect(client);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::kRefused);
  EXPECT_EQ(state.error().what,
            "container 'x' cannot be inspected: not for you (" + name_of(daemon) + ")");
}

TEST_F(DockerClientTest, EncodesNamesInPaths) {
  FakeDaemon daemon;
  CLIENT_OF(daemon);
  EXPECT_FALSE(inspect(client, "../a b?c#d%/e\r\nx: y"));
  EXPECT_TRUE(daemon.last_head().starts_with(
      "GET /v1.41/containers/..%2Fa%20b%3Fc%23d%25%2Fe%0D%0Ax%3A%20y/json HTTP/1.1\r\n"))
      << daemon.last_head();
}

// --- pulls ---

std::string pull_answer(const std::string& lines) {
  return "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + lines;
}

TEST_F(DockerClientTest, APullThatReportsAnErrorFails) {
  FakeDaemon daemon({{"POST /images/create",
                      FakeDaemon::sends_and_closes(pull_answer(
                          "{\"status\":\"Pulling fs layer\",\"id\":\"a\"}\r\n"
                          "{\"errorDetail\":{\"message\":\"write: no space left on device\"},"
                          "\"error\":\"write: no space left on device\"}\r\n"))}});
  CLIENT_OF(daemon);

  const auto pulled = pull(client);

  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(pulled.error().what,
            "image 'host:5000/team/image:1' cannot be pulled: write: no space left on device (" +
                name_of(daemon) + ")");
  EXPECT_NE(daemon.last_head().find(
                "POST /v1.41/images/create?fromImage=host%3A5000%2Fteam%2Fimage&tag=1 "),
            std::string::npos)
      << daemon.last_head();
}

TEST_F(DockerClientTest, APullWithoutErrorsSucceeds) {
  FakeDaemon daemon({{"POST /images/create",
                      FakeDaemon::sends_and_closes(pull_answer("{\"status\":\"Downloaded\"}"))}});
  CLIENT_OF(daemon);
  const auto pulled = pull(client);
  EXPECT_TRUE(pulled) << pulled.error().to_string();
}

TEST_F(DockerClientTest, APullThatStopsFails) {
  FakeDaemon silent(
      {{"POST /images/create", FakeDaemon::sends(pull_answer("{\"status\":\"Waiting\"}\n"))}});
  {
    CLIENT_OF(silent, .silence = kSoon);
    const auto pulled = pull(client);
    ASSERT_FALSE(pulled);
    EXPECT_EQ(pulled.error().what, name_of(silent) + " sent nothing more within 50 ms");
  }
  FakeDaemon broken(
      {{"POST /images/create",
        FakeDaemon::sends_and_closes(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}\n{}\r\n")}});
  CLIENT_OF(broken);
  const auto pulled = pull(client);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::kUnavailable);
}

TEST_F(DockerClientTest, APullWithAnInvalidAnswerFails) {
  FakeDaemon daemon({{"POST /images/create", FakeDaemon::sends(pull_answer("<html>\n"))}});
  CLIENT_OF(daemon);
  const auto pulled = pull(client);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::kInternal);
}

TEST_F(DockerClientTest, CredentialsAreOnlyInOneHeader) {
  FakeDaemon daemon(
      {{"POST /images/create", FakeDaemon::sends(answer(500, R"({"message":"unauthorized"})"))}});
  CLIENT_OF(daemon);

  const auto pulled =
      pull(client, {.server = "host:5000", .username = "ann", .password = "s3cr3t-t0ken"});

  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::kRefused) << pulled.error().what;
  EXPECT_EQ(pulled.error().to_string().find("s3cr3t"), std::string::npos);
  const std::string expected = base::to_base64_for_urls(
      R"({"password":"s3cr3t-t0ken","serveraddress":"host:5000","username":"ann"})");
  EXPECT_NE(daemon.last_head().find("x-registry-auth: " + expected + "\r\n"), std::string::npos);
  EXPECT_FALSE(pull(client));
  EXPECT_EQ(daemon.last_head().find("x-registry-auth"), std::string::npos);
}

// --- streams and events ---

TEST_F(DockerClientTest, AStreamWithoutFramesEnds) {
  FakeDaemon daemon(
      {{"POST /exec/e1/start",
        FakeDaemon::sends(std::string("HTTP/1.1 101 UPGRADED\r\n\r\n\1\0\0\0\0\0\0\2ok", 35) +
                          "this is no frame")}});
  CLIENT_OF(daemon);
  RecordedStream recorded;
  const auto stream = start_exec(client, recorded);
  ASSERT_TRUE(stream) << stream.error().to_string();

  EXPECT_TRUE(loop_.run_until([&] { return recorded.ended; }));
  EXPECT_EQ(recorded.output, "ok");
}

TEST_F(DockerClientTest, AStreamOutlivesItsClient) {
  FakeDaemon daemon({{"POST /exec/e1/start", [](http::RawConnection& connection) {
                        connection.read_to("}");
                        connection.send("HTTP/1.1 101 UPGRADED\r\n\r\n");
                        const std::string input = connection.read_to_the_end();
                        connection.send(std::string("\1\0\0\0\0\0\0\3", 8) + input);
                      }}});
  RecordedStream recorded;
  std::unique_ptr<DockerStream> stream;
  {
    CLIENT_OF(daemon);
    auto started = start_exec(client, recorded);
    ASSERT_TRUE(started) << started.error().to_string();
    stream = *std::move(started);
  }
  stream->write("abc");
  stream->close_input();
  EXPECT_TRUE(loop_.run_until([&] { return recorded.ended; }));
  EXPECT_EQ(recorded.output, "abc");
}

TEST_F(DockerClientTest, AnOutputHandlerMayDropItsStream) {
  FakeDaemon daemon(
      {{"POST /exec/e1/start", FakeDaemon::sends(std::string("HTTP/1.1 101 UPGRADED\r\n\r\n"
                                                             "\1\0\0\0\0\0\0\1a\1\0\0\0\0\0\0\1b",
                                                             43))}});
  CLIENT_OF(daemon);
  std::unique_ptr<DockerStream> stream;
  std::string output;
  client.start_exec("e1", false,
                    {.on_output =
                         [&](std::string_view bytes, bool) {
                           output += bytes;
                           stream.reset();
                           loop_.look();
                         },
                     .on_end = [] { ADD_FAILURE(); }},
                    [&](Result<std::unique_ptr<DockerStream>> started) {
                      ASSERT_TRUE(started);
                      stream = *std::move(started);
                    });
  ASSERT_TRUE(loop_.run_until([&] { return !output.empty(); }));
  EXPECT_EQ(output, "a");
}

TEST_F(DockerClientTest, EventsBeginAtTheEnginesTimeAndEndWithTheConnection) {
  FakeDaemon daemon(
      {{"GET /_ping",
        FakeDaemon::sends(
            answer(200, "OK", "api-version: 1.41\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))},
       {"GET /events",
        FakeDaemon::sends_and_closes("HTTP/1.1 200 OK\r\n\r\n"
                                     "{\"Action\":\"start\",\"Actor\":{\"ID\":\"a\"}}\n"
                                     "{\"Action\":\"die\",\"Actor\":{\"ID\":\"a\"}}\n")}});
  CLIENT_OF(daemon);
  std::string actions;
  std::optional<Error> broken;

  const auto events = client.events(
      {"l=1"}, [&](const DockerEvent& event) { actions += event.action + " "; },
      [&](Error error) {
        broken = std::move(error);
        loop_.look();
      },
      [&] { actions += "open "; });

  ASSERT_TRUE(loop_.run_until([&] { return broken.has_value(); }));
  EXPECT_EQ(actions, "open start die ");
  EXPECT_EQ(broken->code, ErrorCode::kUnavailable);
  EXPECT_EQ(broken->what, name_of(daemon) + " has ended the stream of events");
  EXPECT_NE(daemon.last_head().find("&since=784111777 "), std::string::npos) << daemon.last_head();
}

TEST_F(DockerClientTest, InvalidEventsEndTheStream) {
  FakeDaemon daemon({{"GET /events", FakeDaemon::sends("HTTP/1.1 200 OK\r\n\r\nnonsense\n")}});
  CLIENT_OF(daemon);
  std::optional<Error> broken;
  const auto events = client.events(
      {}, [](const DockerEvent&) { FAIL(); },
      [&](Error error) {
        broken = std::move(error);
        loop_.look();
      });
  ASSERT_TRUE(loop_.run_until([&] { return broken.has_value(); }));
  EXPECT_EQ(broken->code, ErrorCode::kInternal);
}

TEST_F(DockerClientTest, ADroppedHandleEndsItsCallbacks) {
  FakeDaemon daemon({{"GET /events", FakeDaemon::sends("HTTP/1.1 200 OK\r\n\r\n"
                                                       "{\"Action\":\"one\"}\n"
                                                       "{\"Action\":\"two\"}\n")},
                     {"POST /images/create",
                      FakeDaemon::sends(pull_answer("{\"status\":\"1\"}\n{\"status\":\"2\"}\n"))}});
  CLIENT_OF(daemon);
  std::string actions;
  std::shared_ptr<void> held = client.events(
      {},
      [&](const DockerEvent& event) {
        actions += event.action;
        held.reset();
        loop_.look();
      },
      [](const Error&) { FAIL(); });
  ASSERT_TRUE(loop_.run_until([&] { return !actions.empty(); }));
  EXPECT_EQ(actions, "one");

  std::string progress;
  held = client.pull(
      "image", {},
      [&](const PullProgress& made) {
        progress += made.status;
        held.reset();
        loop_.look();
      },
      [](const Result<void>&) { FAIL(); });
  ASSERT_TRUE(loop_.run_until([&] { return !progress.empty(); }));
  EXPECT_EQ(progress, "1");
}

// --- endings ---

TEST_F(DockerClientTest, AnAnswerMayEndTheClientAndItsOtherCalls) {
  FakeDaemon daemon({{"GET /containers/x/json",
                      FakeDaemon::sends(answer(200, R"({"Id":"x","State":{"Status":"running"}})"))},
                     {"GET /containers/y/json", FakeDaemon::hangs()}});
  auto client = std::make_unique<DockerClient>(loop_.loop(), UnixEndpoint{daemon.socket()});
  client->inspect("y", [](const Result<ContainerState>&) { FAIL(); });
  client->inspect("x", [&](const Result<ContainerState>& state) {
    EXPECT_TRUE(state);
    client.reset();
    loop_.look();
  });
  ASSERT_TRUE(loop_.run_until([&] { return client == nullptr; }));
}

TEST_F(DockerClientTest, AWaitingCallMayEndTheClient) {
  FakeDaemon daemon;
  auto client = std::make_unique<DockerClient>(loop_.loop(), UnixEndpoint{daemon.socket()});
  client->info([&](const Result<DockerInfo>&) {
    client.reset();
    loop_.look();
  });
  client->info([](const Result<DockerInfo>&) { FAIL(); });
  client->inspect("x", [](const Result<ContainerState>&) { FAIL(); });
  ASSERT_TRUE(loop_.run_until([&] { return client == nullptr; }));
}

TEST_F(DockerClientTest, WaitsForARemovalInProgress) {
  FakeDaemon daemon({{"DELETE /containers/x",
                      FakeDaemon::sends(answer(
                          409, R"({"message":"removal of container x is already in progress"})"))},
                     {"POST /containers/x/wait",
                      FakeDaemon::sends(answer(404, R"({"message":"No such container: x"})"))}});
  CLIENT_OF(daemon);
  const auto removed = loop_.answer<void>([&](auto then) { client.remove("x", std::move(then)); });
  EXPECT_TRUE(removed) << removed.error().to_string();
  EXPECT_NE(daemon.last_head().find("/wait?condition=removed "), std::string::npos);
}

TEST_F(DockerClientTest, ARefusedUploadHasTheEnginesReason) {
  FakeDaemon daemon({{"PUT /containers/x/archive",
                      FakeDaemon::sends_and_closes(
                          answer(500, R"({"message":"container rootfs is marked read-only"})"))}});
  CLIENT_OF(daemon);
  const auto put = loop_.answer<void>([&](auto then) {
    client.put_archive(
        "x", "/", []() -> Result<std::string> { return std::string(1 << 20, 'x'); },
        std::move(then));
  });
  ASSERT_FALSE(put);
  EXPECT_NE(put.error().what.find("container rootfs is marked read-only"), std::string::npos)
      << put.error().what;
}

TEST_F(DockerClientTest, LeavesOutContainersWithoutTheLabels) {
  FakeDaemon daemon(
      {{"GET /containers/json",
        FakeDaemon::sends(answer(200, R"([{"Id":"a","Labels":{"owner":"me","job":"1"}},
                          {"Id":"b","Labels":{"owner":"you","job":"1"}},{"Id":"c"}])"))}});
  CLIENT_OF(daemon);
  const auto list = loop_.answer<std::vector<ContainerState>>(
      [&](auto then) { client.list({"owner=me", "job"}, std::move(then)); });
  ASSERT_TRUE(list) << list.error().to_string();
  ASSERT_EQ(list->size(), 1U);
  EXPECT_EQ(list->front().id, "a");
}

TEST_F(DockerClientTest, RequestsGpusOfPodmanByItsOwnApi) {
  FakeDaemon daemon(
      {{"GET /_ping",
        FakeDaemon::sends(answer(200, "OK", "api-version: 1.41\r\nlibpod-api-version: 4.3.1\r\n"))},
       {"POST /libpod/containers/create", FakeDaemon::sends(answer(201, R"({"Id":"g"})"))},
       {"POST /containers/create", FakeDaemon::sends(answer(201, R"({"Id":"plain"})"))}});
  CLIENT_OF(daemon);
  ContainerConfig config{.name = "a", .image = "i"};
  const auto create = [&] {
    return loop_.answer<std::string>([&](auto then) { client.create(config, std::move(then)); });
  };
  EXPECT_EQ(*create(), "plain");
  config.gpus = {"0"};
  EXPECT_EQ(*create(), "g");
}

}  // namespace
}  // namespace muster::engine
