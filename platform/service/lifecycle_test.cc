#include "service/lifecycle.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/test_folder.h"
#include "base/unique_fd.h"

namespace muster::service {
namespace {

struct Asked {
  http::Response answer;
  bool left = false;
};

Asked asked(const http::Request& request, const std::optional<std::string>& leader = {}) {
  Asked result;
  bool answered = false;
  const http::Handler handler = standby_handler({.version = "1",
                                                 .state_folder = "/state",
                                                 .leader = [&] { return leader; },
                                                 .leave = [&] { result.left = true; }});
  handler(request, [&](http::Response response) {
    result.answer = std::move(response);
    answered = true;
  });
  EXPECT_TRUE(answered);
  return result;
}

TEST(Standby, IsAliveButNotReady) {
  EXPECT_EQ(asked({.path = "/healthz"}).answer.status, 200);
  EXPECT_EQ(asked({.path = "/readyz"}).answer.status, 503);
}

TEST(Standby, NamesTheLeader) {
  for (const char* path : {"/readyz", "/v1/jobs", "/metrics", "/anything"}) {
    const http::Response answer = asked({.path = path}, "muster-1:7443").answer;
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(answer.content_type, "application/problem+json");
    EXPECT_EQ(answer.headers.at("retry-after"), "1");
    EXPECT_NE(answer.body.find("this server is on standby; muster-1:7443 leads"), std::string::npos)
        << answer.body;
  }
}

TEST(Standby, ReportsThatThereIsNoLeader) {
  EXPECT_NE(asked({.path = "/v1/jobs"}).answer.body.find("no server leads"), std::string::npos);
}

TEST(Standby, CanBeStoppedOnlyByItsOwner) {
  const http::Request strange{.method = "POST", .path = "/v1/shutdown"};
  EXPECT_FALSE(asked(strange).left);
  http::Request own = strange;
  own.peer.user = 0;
  const Asked own_answer = asked(own);
  EXPECT_TRUE(own_answer.left);
  EXPECT_EQ(own_answer.answer.status, 202);
}

TEST(Standby, IdentifiesItselfOnlyToItsOwner) {
  http::Request request{.path = "/v1/info"};
  EXPECT_EQ(asked(request).answer.status, 503);
  request.peer.user = 0;
  const http::Response answer = asked(request).answer;
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("/state"), std::string::npos);
}

}  // namespace
namespace {

/// A socket that receives the notifications of a service, in place of systemd's.
base::UniqueFd listening_at(const std::string& name) {
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  return fd;
}

std::string received_by(const base::UniqueFd& fd) {
  std::array<char, 256> text{};
  const ssize_t count = ::recv(fd.get(), text.data(), text.size(), MSG_DONTWAIT);
  return count < 0 ? "" : std::string(text.data(), static_cast<size_t>(count));
}

TEST(Notify, ReachesASocketInTheFileSystem) {
  const base::TestFolder folder;
  const std::string name = (folder / "notify").string();
  const base::UniqueFd systemd = listening_at(name);
  EXPECT_TRUE(notify(name, "READY=1\nSTATUS=leads"));
  EXPECT_EQ(received_by(systemd), "READY=1\nSTATUS=leads");
}

TEST(Notify, ReachesAnAbstractSocket) {
  const base::TestFolder folder;
  const std::string name = "@" + (folder / "notify").string();
  const base::UniqueFd systemd = listening_at(name);
  EXPECT_TRUE(notify(name, "STOPPING=1"));
  EXPECT_EQ(received_by(systemd), "STOPPING=1");
}

TEST(Notify, IgnoresAMissingListener) {
  EXPECT_FALSE(notify("", "READY=1"));
  EXPECT_FALSE(notify("/nowhere/at/all", "READY=1"));
  EXPECT_FALSE(notify("relative", "READY=1"));
  EXPECT_FALSE(notify("/" + std::string(200, 'x'), "READY=1"));
}

TEST(Notify, RemovesTheVariableFromTheEnvironmentOfJobs) {
  ::setenv("NOTIFY_SOCKET", "/run/systemd/notify", 1);
  EXPECT_EQ(take_notify_socket(), "/run/systemd/notify");
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  EXPECT_EQ(take_notify_socket(), "");
}

}  // namespace
namespace {

http::Handler answering_with(const std::string& text) {
  return [text](const http::Request&, const http::Respond& respond) { respond({.body = text}); };
}

int status_of(const http::Handler& handler, std::string& body) {
  std::optional<http::Response> answer;
  handler({}, [&](http::Response response) { answer = std::move(response); });
  if (!answer) return 0;
  body = answer->body;
  return answer->status;
}

TEST(FrontDoor, PassesRequestsToThePresentHandler) {
  FrontDoor door;
  const http::Handler handler = door.handler();
  std::string body;

  EXPECT_EQ(status_of(handler, body), 503);
  door.let_answer(answering_with("first"));
  EXPECT_EQ(status_of(handler, body), 200);
  EXPECT_EQ(body, "first");
  door.let_answer(answering_with("second"));
  EXPECT_EQ(status_of(handler, body), 200);
  EXPECT_EQ(body, "second");
}

TEST(FrontDoor, RefusesRequestsAfterItsDestruction) {
  auto door = std::make_unique<FrontDoor>();
  const http::Handler handler = door->handler();
  door->let_answer(answering_with("first"));
  door.reset();
  std::string body;
  EXPECT_EQ(status_of(handler, body), 503);
}

TEST(FrontDoor, AHandlerMayBeReplacedDuringItsOwnAnswer) {
  FrontDoor door;
  const std::string text(100, 'x');
  door.let_answer([&door, text](const http::Request&, const http::Respond& respond) {
    door.let_answer(answering_with("next"));
    respond({.body = text});
  });
  std::string body;
  EXPECT_EQ(status_of(door.handler(), body), 200);
  EXPECT_EQ(body, text);
}

}  // namespace
}  // namespace muster::service
