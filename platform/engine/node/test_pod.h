// For tests: a server that connects to muster-nodes in pods. A pod is a sandbox of bubblewrap with a
// root folder that holds nothing but Muster's programs, read-only, an ordinary account and no
// rights: what Kubernetes gives a pod of an empty image under the restricted profile.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "engine/node/dial.h"
#include "engine/node/pod.h"
#include "engine/node/program_streams.h"
#include "engine/node/test_server.h"

namespace muster::engine::node {

inline base::UniqueFd connected_to_pod(uint16_t port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    socket.reset();
  }
  return socket;
}

/// A pod with a muster-node. It is killed when the object is destroyed.
class TestPod {
 public:
  struct Options {
    std::vector<std::string> more_words;  ///< of bubblewrap, before the root becomes read-only
    std::map<std::string, std::string> variables;
    std::filesystem::path folder;  ///< /muster of the pod
    std::filesystem::path complaints;
    bool is_writable = false;
  };

  explicit TestPod(const Options& options) : complaints_(options.complaints) {
    const std::filesystem::path programs = std::filesystem::path(MUSTER_NODE).parent_path();
    std::vector<std::string> words{"bwrap",
                                   "--unshare-user",
                                   "--uid",
                                   "1000",
                                   "--gid",
                                   "1000",
                                   "--unshare-pid",
                                   "--as-pid-1",
                                   "--unshare-uts",
                                   "--hostname",
                                   "job-main",
                                   "--unshare-ipc",
                                   "--die-with-parent",
                                   "--cap-drop",
                                   "ALL",
                                   "--tmpfs",
                                   "/",
                                   "--proc",
                                   "/proc",
                                   "--dev",
                                   "/dev",
                                   "--tmpfs",
                                   "/generated",
                                   "--bind",
                                   options.folder,
                                   "/muster",
                                   "--ro-bind",
                                   programs,
                                   "/programs",
                                   "--ro-bind",
                                   MUSTER_TEST_PROGRAM,
                                   "/program"};
    words.insert(words.end(), options.more_words.begin(), options.more_words.end());
    if (!options.is_writable) words.insert(words.end(), {"--remount-ro", "/"});
    words.insert(words.end(), {"--chdir", "/", "/programs/muster-node", "--pod", kPodBrief});
    std::map<std::string, std::string> variables{
        {"PATH", "/bin"}, {"IMAGE_SAYS", "hello"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
        {kPodNode, "n1"}, {kPodUid, "5eed-uid"},   {kPodAddress, "10.1.2.3"},
        {kPodIndex, "4"}};
    for (const auto& [name, value] : options.variables) variables[name] = value;
    std::vector<std::string> environment;
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    const base::UniqueFd errors(
        ::open(complaints_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    auto child = base::spawn({.argv = words,
                              .environment = environment,
                              .descriptors = {{errors.get(), 1}, {errors.get(), 2}},
                              .new_session = true});
    EXPECT_TRUE(child) << child.error().what;
    if (child) process_ = *std::move(child);
  }
  ~TestPod() {
    if (process_.pid <= 0 || code_) return;
    [[maybe_unused]] const auto sent = base::send_signal(process_.pidfd, SIGKILL);
    [[maybe_unused]] const auto status = base::wait_for(process_);
  }
  TestPod(const TestPod&) = delete;
  TestPod& operator=(const TestPod&) = delete;

  /// Process 1 of the pod, by its number here.
  pid_t process_one() const {
    const std::string pid = std::to_string(process_.pid);
    const auto children = base::read_file("/proc/" + pid + "/task/" + pid + "/children");
    return children ? base::number_of<pid_t>(children->substr(0, children->find(' '))).value_or(-1)
                    : -1;
  }
  int pidfd() const { return process_.pidfd.get(); }
  int code() {
    if (code_) return *code_;
    const auto status = base::wait_for(process_);
    code_ = !status ? -1 : WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
    return *code_;
  }
  std::string complaints() const {
    auto text = base::read_file(complaints_);
    return text ? *std::move(text) : "";
  }

 private:
  std::filesystem::path complaints_;
  base::Child process_;
  std::optional<int> code_;
};

/// A server with one such pod.
class TestPodServer : public TestServer {
 protected:
  NodeBrief pod_brief() const {
    NodeBrief brief = TestServer::brief();
    brief.hosts.clear();
    brief.port = pod_port_;
    return brief;
  }

  void run_pod(const NodeBrief& brief, TestPod::Options options = {}) {
    if (!std::filesystem::exists(pod_folder())) {
      std::filesystem::create_directories(pod_folder());
      std::filesystem::permissions(pod_folder(), std::filesystem::perms::all);
    }
    ASSERT_TRUE(base::write_file(pod_folder() / "brief", encode(brief), 0444));
    options.folder = pod_folder();
    options.complaints = folder_ / "complaints";
    pod_.emplace(options);
  }
  void run_pod(TestPod::Options options = {}) { run_pod(pod_brief(), std::move(options)); }

  std::filesystem::path pod_folder() const { return folder_ / "pod"; }

  virtual std::string complaints() const { return pod_ ? pod_->complaints() : ""; }

  void wait_in_pod(const std::function<bool()>& is_done) {
    ASSERT_TRUE(loop_.run_until(is_done)) << "the pod's complaints: " << complaints();
  }

  using Dialled = std::optional<Result<std::shared_ptr<NodeConnection>>>;

  virtual std::unique_ptr<PeerStream> stream_to_pod() {
    return stream_on(loop_.loop(), socket_to_pod());
  }

  /// Connects until the pod listens.
  base::UniqueFd socket_to_pod() {
    base::UniqueFd socket = connected_to_pod(pod_port_);
    while (!socket) {
      bool again = false;
      const auto later = loop_.loop().after(std::chrono::milliseconds(20), [&] {
        again = true;
        loop_.look();
      });
      EXPECT_TRUE(loop_.run_until([&] { return again; }));
      socket = connected_to_pod(pod_port_);
    }
    return socket;
  }

  Dialled dial(uint64_t stream, const rsh::Key& key) {
    Dialled answer;
    auto to_pod = stream_to_pod();
    const auto call = dial_node(loop_.loop(), std::move(to_pod),
                                {.gang = gang_, .key = key, .stream = stream}, loop_.into(answer));
    EXPECT_TRUE(loop_.run_until([&] { return answer.has_value(); }))
        << "the pod's complaints: " << complaints();
    return answer;
  }

  /// Connects for orders.
  void meet() {
    auto line = dial(0, key_);
    ASSERT_TRUE(line && *line) << line->error().to_string();
    take(**std::move(line));
  }
  /// Connects for a stream that was ordered.
  void meet_stream(uint64_t number) {
    auto line = dial(number, key_);
    ASSERT_TRUE(line && *line) << line->error().to_string();
    take(**std::move(line));
  }

  template <class News>
  News wait_in_pod_for() {
    wait_in_pod([this] { return find<News>() != nullptr; });
    return find<News>() != nullptr ? *find<News>() : News{};
  }

  StartOrder pod_order(std::vector<std::string> argv) const {
    StartOrder order = TestServer::order("");
    order.plan.argv = std::move(argv);
    order.plan.reach = launch::Reach::kNames;
    order.plan.address = "job-main.job";
    order.programs = "/programs";
    order.folder = kPodJobs;
    return order;
  }

  void start_in_pod(const StartOrder& order) {
    auto mirror = Mirror::open({folder_ / "jobs" / "job-1" / "2" / "main"}, order.log_quota);
    ASSERT_TRUE(mirror);
    mirror_.emplace(*std::move(mirror));
    line_->send(order);
    const auto answer = wait_in_pod_for<StartAnswer>();
    ASSERT_FALSE(answer.error) << answer.error->to_string();
  }

  void wait_for_pods_end() {
    bool over = false;
    const auto end = loop_.loop().when_readable(pod_->pidfd(), [&] {
      over = true;
      loop_.look();
    });
    wait_in_pod([&] { return over; });
  }
  void dismiss_pod(int code) {
    line_->send(Farewell{code});
    wait_for_pods_end();
    EXPECT_EQ(pod_->code(), code) << pod_->complaints();
  }

  // --- programs beside the task

  struct PodProgram {
    std::string output;
    std::string error;
    std::optional<job::ExitStatus> status;
    std::unique_ptr<Exec> exec;
  };

  void connect_program(uint64_t stream, PodProgram& program) {
    const auto conversation = std::make_shared<RunConversation>(
        loop_.loop(), job::ExitStatus{.signal = SIGKILL},
        ExecHandlers{.on_output =
                         [this, &program](std::string_view bytes, bool is_error) {
                           (is_error ? program.error : program.output) += bytes;
                           loop_.look();
                         },
                     .on_exit =
                         [this, &program](const job::ExitStatus& status) {
                           program.status = status;
                           loop_.look();
                         }});
    program.exec = near_end_of(conversation);
    meet_stream(stream);
    ASSERT_EQ(streams_.count(stream), 1U);
    auto line = streams_[stream];
    streams_.erase(stream);
    conversation->connected(link_program(std::move(line), conversation));
  }

  const base::HeldPort held_port_;
  const uint16_t pod_port_ = held_port_.number();
  std::optional<TestPod> pod_;
};

}  // namespace muster::engine::node
