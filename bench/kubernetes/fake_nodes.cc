// Imitates the muster-nodes of many pods in one process, for a benchmark whose pods are simulated
// (bench/kubernetes_scale.py). Like muster-node, each fake node connects to the server and uses its
// protocol over an encrypted connection. It runs no program: it reports a task as started as soon as
// it receives the order, and reports the end of the task when it is to stop.
//
// Standard input has a line of JSON for each pod: {"brief": TEXT, "index": N, "node": NAME, "uid": UID}.
// For each task that has started, a line "started" is printed. The end of the input ends the program.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "engine/node/brief.h"
#include "engine/node/connection.h"

using namespace muster;                // NOLINT(google-build-using-namespace): this is its program
using namespace muster::engine;        // NOLINT(google-build-using-namespace): the same
using namespace muster::engine::node;  // NOLINT(google-build-using-namespace): the same

namespace {

base::UniqueFd connected(const std::string& host, uint16_t port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool is_connected =
      ::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1 &&
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return is_connected ? std::move(socket) : base::UniqueFd();
}

class FakeNode {
 public:
  FakeNode(base::EventLoop& loop, const NodeBrief& brief, NodeFacts facts, base::UniqueFd socket)
      : facts_(std::move(facts)),
        line_(std::make_shared<NodeSocket>(loop, std::move(socket), rsh::End::kNear, brief.key)) {
    line_->begin({.on_established = [this] { greet(); },
                  .on_message = [this](const NodeMessage& message) { take(message); },
                  .on_end = [](const std::string&) {},
                  .on_drain = [] {}},
                 encode(brief.caller));
  }

 private:
  void greet() {
    launch::ImageFacts image;
    image.folder = "/";
    image.has_shell = true;
    line_->send(NodeNews(Hello{
        .facts = facts_, .address = "127.0.0.1", .version = "fake", .image = std::move(image)}));
  }

  void take(const NodeMessage& message) {
    const auto* const order = std::get_if<NodeOrder>(&message);
    if (order == nullptr) return;
    if (std::holds_alternative<StartOrder>(*order)) {
      line_->send(NodeNews(StartAnswer{}));
      line_->send(NodeNews(AnsweredNews{}));
      std::puts("started");
      std::fflush(stdout);
    } else if (std::holds_alternative<StopOrder>(*order)) {
      job::ExitStatus status{.signal = SIGTERM};
      status.stopped = true;
      line_->send(
          NodeNews(EndedNews{{.status = std::move(status), .time = base::SystemClock().now()}}));
    } else if (std::holds_alternative<Farewell>(*order)) {
      line_->send(NodeNews(LeftNews{}));
    }
  }

  NodeFacts facts_;
  std::shared_ptr<NodeSocket> line_;
};

class FakeNodes {
 public:
  explicit FakeNodes(base::EventLoop& loop)
      : loop_(loop), input_(loop.when_readable(STDIN_FILENO, [this] { read(); })) {}

 private:
  void read() {
    std::array<char, 1 << 16> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count == 0) return loop_.stop();
    if (count < 0) return;
    text_.append(bytes.data(), static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      add(nlohmann::json::parse(text_.substr(begin, end - begin)));
    }
    text_.erase(0, begin);
  }

  void add(const nlohmann::json& pod) {
    const auto brief = decode_node_brief(pod.at("brief").get<std::string>());
    if (!brief) {
      std::fprintf(stderr, "fake_nodes: %s\n", brief.error().what.c_str());
      return;
    }
    base::UniqueFd socket = connected(brief->hosts.front(), brief->port);
    if (!socket) {
      std::perror("fake_nodes: cannot connect to the server");
      return;
    }
    nodes_.emplace_back(
        loop_, *brief,
        NodeFacts{.index = pod.at("index"), .node = pod.at("node"), .instance = pod.at("uid")},
        std::move(socket));
  }

  base::EventLoop& loop_;
  std::string text_;
  std::list<FakeNode> nodes_;
  base::EventLoop::Interest input_;
};

}  // namespace

int main() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  ::signal(SIGPIPE, SIG_IGN);
  base::EventLoop loop;
  const FakeNodes nodes(loop);
  loop.run();
  return 0;
}
