// For tests: a Slurm engine on a fake Slurm that the test moves by hand, and scripted muster-nodes
// over real connections.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "engine/node/brief.h"
#include "engine/node/connection.h"
#include "engine/shim/plan.h"
#include "engine/slurm/fake_slurm_client.h"
#include "engine/slurm/gang_record.h"
#include "engine/slurm/slurm_engine.h"
#include "words/sentence.h"

namespace muster::engine::slurm {

/// The brief in a batch script, which muster-nodes read.
inline node::NodeBrief brief_in(const std::string& script) {
  const size_t begin = script.find("\n{");
  const auto brief =
      node::decode_node_brief(script.substr(begin + 1, script.find('\n', begin + 1) - begin));
  EXPECT_TRUE(brief) << script;
  return brief ? *brief : node::NodeBrief{};
}

inline base::UniqueFd connected_to(uint16_t port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  return socket;
}

/// A scripted muster-node: it sends its hello, and then the messages of the test.
class FakeNode {
 public:
  FakeNode(base::TestLoop& loop, const node::NodeBrief& brief, node::Hello hello) : loop_(loop) {
    base::UniqueFd socket = connected_to(brief.port);
    socket_ = std::make_shared<node::NodeSocket>(loop.loop(), std::move(socket), rsh::End::kNear,
                                                 brief.key);
    socket_->begin({.on_established = [this, hello] { socket_->send(hello); },
                    .on_message =
                        [this](node::NodeMessage message) {
                          if (auto* const order = std::get_if<node::NodeOrder>(&message)) {
                            orders.push_back(std::move(*order));
                          }
                          loop_.look();
                        },
                    .on_end =
                        [this](const std::string&) {
                          is_hung_up = true;
                          loop_.look();
                        },
                    .on_drain = nullptr},
                   encode(brief.caller));
  }
  ~FakeNode() { socket_->hang_up(); }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  void send(node::NodeNews news) { socket_->send(std::move(news)); }
  void hang_up() { socket_->hang_up(); }

  /// The last order of that kind; null: no such order has arrived.
  template <class Order>
  const Order* last() const {
    const Order* found = nullptr;
    for (const node::NodeOrder& order : orders) {
      if (const auto* const one = std::get_if<Order>(&order)) found = one;
    }
    return found;
  }

  std::vector<node::NodeOrder> orders;
  bool is_hung_up = false;

 private:
  base::TestLoop& loop_;
  std::shared_ptr<node::NodeSocket> socket_;
};

/// The bytes that arrive on the connection of a stream.
class StreamCatch {
 public:
  StreamCatch(base::TestLoop& loop, const node::NodeBrief& brief, const node::Hello& hello) {
    base::UniqueFd socket = connected_to(brief.port);
    socket_ = std::make_shared<node::NodeSocket>(loop.loop(), std::move(socket), rsh::End::kNear,
                                                 brief.key);
    socket_->begin({.on_established = [this, hello] { socket_->send(hello); },
                    .on_message =
                        [this, &loop](const node::NodeMessage& message) {
                          if (const auto* piece = std::get_if<node::StreamBytes>(&message)) {
                            bytes += piece->bytes;
                          }
                          is_over = is_over || std::holds_alternative<node::StreamEnd>(message);
                          loop.look();
                        },
                    .on_end =
                        [this, &loop](const std::string&) {
                          is_hung_up = true;
                          loop.look();
                        },
                    .on_drain = nullptr},
                   encode(brief.caller));
  }
  ~StreamCatch() { socket_->hang_up(); }
  StreamCatch(const StreamCatch&) = delete;
  StreamCatch& operator=(const StreamCatch&) = delete;

  std::string bytes;
  bool is_over = false;
  bool is_hung_up = false;

 private:
  std::shared_ptr<node::NodeSocket> socket_;
};

/// A scripted muster-node's end of a stream, on which it sends a folder.
class StreamSource {
 public:
  StreamSource(base::TestLoop& loop, const node::NodeBrief& brief, const node::Hello& hello) {
    base::UniqueFd socket = connected_to(brief.port);
    socket_ = std::make_shared<node::NodeSocket>(loop.loop(), std::move(socket), rsh::End::kNear,
                                                 brief.key);
    socket_->begin({.on_established =
                        [this, hello, &loop] {
                          socket_->send(hello);
                          is_open = true;
                          loop.look();
                        },
                    .on_message = [](const node::NodeMessage&) {},
                    .on_end = [](const std::string&) {},
                    .on_drain = nullptr},
                   encode(brief.caller));
  }
  ~StreamSource() { socket_->hang_up(); }
  StreamSource(const StreamSource&) = delete;
  StreamSource& operator=(const StreamSource&) = delete;

  void send(const node::NodeMessage& message) { socket_->send(message); }
  bool has_sent_all() const { return socket_->waiting() == 0; }

  bool is_open = false;

 private:
  std::shared_ptr<node::NodeSocket> socket_;
};

class SlurmEngineTest : public testing::Test {
 protected:
  SlurmEngineTest() {
    cluster_.nodes = {{.name = "n1",
                       .address = "10.0.0.1",
                       .state_text = "IDLE",
                       .takes_jobs = true,
                       .reason = {},
                       .cpus = 8,
                       .memory_bytes = int64_t{8} << 30,
                       .gpu_type = {},
                       .partitions = {"main", "long"},
                       .features = {"nvlink"}}};
    open();
  }
  ~SlurmEngineTest() override { engine_.reset(); }

  /// Starts a new server after the earlier one has ended.
  void open(const std::function<void(SlurmEngineOptions&)>& change = {}) {
    engine_.reset();
    news_.clear();
    reports_.clear();
    SlurmEngineOptions options;
    options.folder = folder_ / "jobs";
    options.programs = "/opt/muster";
    options.owner = "0123456789abcdef";
    options.callback_bind = "127.0.0.1";
    options.callback_hosts = {"127.0.0.1"};
    options.node_folder = folder_ / "nodes";
    // Short pauses: other tests check the pauses themselves.
    options.quick_poll = options.slow_poll = std::chrono::milliseconds(5);
    options.unpack_tree = [](const std::string&, const std::string&,
                             const std::filesystem::path& into) {
      return base::write_new_file(into / "file", "of the tree");
    };
    if (change) change(options);
    engine_ = std::make_unique<SlurmEngine>(
        loop_.loop(), options, std::make_unique<FakeSlurmClient>(loop_.loop(), cluster_));
    engine_->set_allocation_listener([this](const GangId& gang, const AllocationNews& news) {
      EXPECT_FALSE(is_calling_) << "a report within a call";
      news_[gang].push_back(news);
      loop_.look();
    });
    engine_->listen([this](const TaskReport& report) {
      EXPECT_FALSE(is_calling_) << "a report within a call";
      reports_.push_back(report);
      loop_.look();
    });
  }

  AllocationRequest request_for(std::vector<std::string> tasks) const {
    AllocationRequest request{.job = "train", .project = "vision"};
    for (std::string& task : tasks) request.tasks.push_back({.task = std::move(task)});
    return request;
  }

  /// Calls the engine and checks that no report is made within the call.
  template <class Call>
  void call(Call made) {
    is_calling_ = true;
    made();
    is_calling_ = false;
  }
  void ask(const GangId& gang, AllocationRequest what) {
    call([&] { engine_->request_allocation(gang, std::move(what)); });
  }
  void give_back(const GangId& gang) {
    call([&] { engine_->release_allocation(gang); });
  }

  /// Runs the loop until `is_so` is true.
  void wait_until(const std::function<bool()>& is_so, const char* what = "it never came") {
    const std::function<void()> tick = [&] {
      loop_.look();
      ticking_ = loop_.loop().after(std::chrono::milliseconds(2), tick);
    };
    ticking_ = loop_.loop().after(std::chrono::milliseconds(2), tick);
    EXPECT_TRUE(loop_.run_until(is_so)) << what;
    ticking_.reset();
  }

  template <class News>
  const News* last_news(const GangId& gang) {
    const News* last = nullptr;
    for (const AllocationNews& each : news_[gang]) {
      if (const auto* const found = std::get_if<News>(&each)) last = found;
    }
    return last;
  }
  template <class News>
  News wait_for(const GangId& gang) {
    wait_until([&] { return last_news<News>(gang) != nullptr; });
    const News* const last = last_news<News>(gang);
    return last != nullptr ? *last : News{};
  }
  /// Runs until the reason of the wait contains this text.
  void wait_for_reason(const GangId& gang, const std::string& words) {
    wait_until(
        [&] {
          const auto* const waits = last_news<AllocationPending>(gang);
          return waits != nullptr &&
                 words::sentence(waits->reason).find(words) != std::string::npos;
        },
        words.c_str());
  }
  /// Runs until this many more listings have been handled.
  void wait_for_polls(int count = 2) {
    const int until = cluster_.listings + count;
    wait_until([&] { return cluster_.listings > until; });
  }

  node::Hello hello(int index = 0, int restarts = 0, uint64_t job = 17,
                    const std::string& node = "n1") {
    return {.facts = {.index = index,
                      .allocation = job,
                      .restarts = restarts,
                      .node = node,
                      .gpus = {},
                      .gpu_indices = {}},
            .address = "127.0.0.1",
            .shares_folder = is_shared_,
            .version = "1"};
  }
  std::unique_ptr<FakeNode> node(node::Hello hello, size_t submission = 0) {
    return std::make_unique<FakeNode>(loop_, brief_in(cluster_.submitted.at(submission).script),
                                      std::move(hello));
  }

  /// A gang of one task with an allocation.
  std::unique_ptr<FakeNode> gang_with_allocation() {
    ask(gang_, request_for({"main"}));
    wait_until([&] { return cluster_.submitted.size() == 1; });
    cluster_.run(17, {"n1"});
    auto its_node = node(hello());
    wait_for<AllocationGranted>(gang_);
    return its_node;
  }
  launch::TaskPlan plan(const std::string& task = "main") {
    return {.task = task, .node = "n1", .argv = {"true"}, .project = "vision"};
  }
  /// A gang of one task, which runs.
  std::unique_ptr<FakeNode> gang_that_runs() {
    auto its_node = gang_with_allocation();
    std::optional<base::Result<void>> started;
    call([&] { engine_->start(gang_, {plan()}, loop_.into(started)); });
    wait_until([&] { return its_node->last<node::StartOrder>() != nullptr; });
    its_node->send(node::StartAnswer{});
    wait_until([&] { return started.has_value(); });
    EXPECT_TRUE(started && *started);
    return its_node;
  }

  const TaskEnded* end_of(const std::string& task) const {
    for (const TaskReport& report : reports_) {
      const auto* const end = std::get_if<TaskEnded>(&report.what);
      if (report.task == task && end != nullptr) return end;
    }
    return nullptr;
  }
  GangRecord record(const GangId& gang) const {
    auto records = gang_records_in(folder_ / "jobs");
    EXPECT_TRUE(records);
    if (!records) return {};
    for (auto& [name, record] : *records) {
      if (name == gang && record) return *record;
    }
    return {};
  }
  bool has_record(const GangId& gang) const {
    return std::filesystem::exists(
        gang_record_in(folder_ / "jobs" / gang.job_id / std::to_string(gang.attempt)));
  }

  const GangId gang_{"job1", 1};
  const GangId next_{"job1", 2};
  bool is_shared_ = true;
  base::TestFolder folder_;
  base::TestLoop loop_;
  base::EventLoop::Interest ticking_;
  FakeSlurmClient::Cluster cluster_;
  std::unique_ptr<SlurmEngine> engine_;
  std::map<GangId, std::vector<AllocationNews>> news_;
  std::vector<TaskReport> reports_;
  bool is_calling_ = false;
};

}  // namespace muster::engine::slurm
