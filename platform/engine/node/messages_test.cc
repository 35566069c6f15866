#include "engine/node/messages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/node/fields.h"

namespace muster::engine::node {
namespace {

/// A text that contains every byte.
const std::string kBytes("a\0\xff\n", 4);

launch::TaskPlan full_plan() {
  launch::TaskPlan plan;
  plan.task = "worker-3";
  plan.role = job::TaskRole::kEvaluator;
  plan.node = "n7";
  plan.hostname = "job-worker-3";
  plan.reach = launch::Reach::kHosts;
  plan.address = "10.0.0.7";
  plan.argv = {"python", "-c", kBytes};
  plan.environment = {{"A", kBytes}, {"B", ""}};
  plan.folder = "/work";
  plan.image = "sha256:0";
  plan.account = {.uid = 1000, .gid = 4294967294U, .name = "me", .home = "/home/me"};
  plan.container = {.pull = job::PullPolicy::kNever,
                    .writable_root = true,
                    .new_privileges = true,
                    .capabilities = {"SYS_PTRACE"},
                    .shm_bytes = int64_t{1} << 40};
  plan.resources = {.gpus = 8,
                    .gpu_share_milli = 500,
                    .gpu_memory_bytes = int64_t{80} << 30,
                    .cpu_milli = 1500,
                    .memory_bytes = int64_t{1} << 41};
  plan.devices = {0, 5};
  plan.project = "team";
  plan.owner = "ada";
  plan.unix_account = "ada-l";
  plan.volumes = {{.kind = job::Volume::Kind::kArtifacts,
                   .source = "s",
                   .target = "/artifacts",
                   .read_only = true}};
  plan.sandbox = job::Sandbox::kNone;
  plan.grace = std::chrono::milliseconds(12345);
  plan.files = {{.path = "ssh/config", .content = kBytes, .mode = 0644, .secret = true}};
  plan.folders = {"ranks"};
  plan.ssh = launch::SshService{.port = 65535, .command = {"sshd", "-i"}, .bind = "127.0.0.2"};
  plan.serves = {{.port = 2222, .address = "127.0.0.3"}};
  plan.also_at = {{"hostfile", "/etc/mpi/hostfile"}};
  plan.mpi = launch::MpiChoice{
      .program = "mpiexec",
      .variants = {{job::MpiKind::kIntel, {.environment = {{"I", "1"}}, .files = {{"a", "b"}}}}}};
  plan.takes_ranks = plan.input = plan.terminal = true;
  plan.gpus = {"GPU-1", "MIG-2"};
  plan.own_rank_output = plan.tags_ranks = plan.prepends_rank = true;
  plan.hosts = {{"job-worker-3", "10.0.0.7"}};
  return plan;
}

NodeMessage decoded(const std::string& text) {
  NodeReader reader;
  reader.add(text);
  auto message = reader.next();
  EXPECT_TRUE(message) << message.error().what;
  EXPECT_TRUE(message && *message);
  EXPECT_EQ(reader.waiting(), 0u);
  return message && *message ? **std::move(message) : NodeMessage(StreamEnd{});
}

/// Types without an operator== are compared by their encoding.
void expect_round_trip(const NodeMessage& message) {
  const std::string text = encode_node(message);
  const NodeMessage read = decoded(text);
  EXPECT_EQ(read.index(), message.index());
  EXPECT_EQ(encode_node(read), text);
}

std::vector<NodeMessage> one_of_each() {
  const base::Error error{
      .code = base::ErrorCode::kExhausted, .what = "no room: " + kBytes, .advice = "make some"};
  StartOrder start{
      .attempt = 7,
      .plan = full_plan(),
      .programs = "/opt/muster",
      .folder = "/tmp/muster-1",
      .storage = "/srv",
      .is_shared = true,
      .log_quota = UINT64_MAX,
      .limits = {.processes = 7, .open_files = 8, .file_bytes = 9, .scratch_bytes = INT64_MAX},
      .first_sample_ms = 1,
      .sample_interval_ms = 2,
      .hidden = {"/secret"},
      .trees = {0, UINT64_MAX}};
  const job::ExitStatus status{.code = 1,
                               .signal = 9,
                               .out_of_memory = true,
                               .stopped = true,
                               .lost = true,
                               .error = kBytes,
                               .limit = job::LimitReached{job::Limit::kProcesses, 40, 41}};
  return {
      NodeNews(Hello{.stream = 3,
                     .facts = {.component = 1,
                               .index = 2,
                               .allocation = UINT64_MAX,
                               .restarts = 4,
                               .node = "n1",
                               .gpus = {"0", "GPU-3"},
                               .gpu_indices = {4, 6},
                               .instance = "uid"},
                     .address = "fe80::1",
                     .shares_folder = true,
                     .version = "1.2.3",
                     .holds_task = true,
                     .image = launch::ImageFacts{.image = "train:1",
                                                 .id = "sha256:1",
                                                 .entrypoint = {"/e"},
                                                 .command = {"c"},
                                                 .environment = {{"A", kBytes}},
                                                 .folder = "/w",
                                                 .account = {1, 2, "me", "/home/me"},
                                                 .sshd = "/usr/sbin/sshd",
                                                 .has_ssh = true,
                                                 .has_shell = true}}),
      NodeNews(StartAnswer{}),
      NodeNews(StartAnswer{error}),
      NodeNews(ChangeAnswer{7, std::nullopt}),
      NodeNews(ChangeAnswer{8, error}),
      NodeNews(AnsweredNews{}),
      NodeNews(EndedNews{{.status = status, .time = base::Time(std::chrono::nanoseconds(-5))}}),
      NodeNews(GrownNews{.log = true, .ranks = true}),
      NodeNews(RecordNews{{.kind = FollowKind::kLog, .offset = 9, .bytes = kBytes}}),
      NodeNews(SignalledNews{15}),
      NodeNews(StreamRefused{11, error}),
      NodeNews(LeftNews{}),
      NodeOrder(Welcome{.log_offset = 1, .metrics_offset = UINT64_MAX, .start = 2}),
      NodeOrder(start),
      NodeOrder(StopOrder{StopMode::kGraceful}),
      NodeOrder(ChangeOrder{12,
                            {.task = "main",
                             .files = {{.path = "hostfile", .content = kBytes}},
                             .hosts = {{"a", "b"}}}}),
      NodeOrder(ExecOrder{13,
                          {.helper = Helper::kConnect,
                           .argv = {"22"},
                           .environment = {{"A", "b"}},
                           .terminal = true,
                           .rows = 50,
                           .columns = 132}}),
      NodeOrder(AttachOrder{14}),
      NodeOrder(ArtifactsOrder{15}),
      NodeOrder(Farewell{255}),
      NodeOrder(Farewell{.code = 3, .keeps_artifacts = true}),
      StreamEnd{.error = {}, .notes = {"'/artifacts/key' cannot be read: Permission denied"}},
      StreamBytes{kBytes},
      StreamEnd{},
      StreamEnd{error},
  };
}

TEST(NodeWire, EachMessageSurvivesEncodingAndDecoding) {
  for (const NodeMessage& message : one_of_each()) expect_round_trip(message);
}

TEST(NodeWire, APlanSurvivesEncodingAndDecoding) {
  EXPECT_EQ(task_plan_of(to_json(full_plan())), full_plan());
  EXPECT_EQ(task_plan_of(to_json(launch::TaskPlan{})), launch::TaskPlan{});
  const launch::FileChange change{
      .task = "t", .files = {{.path = "p", .content = kBytes}}, .hosts = {{"a", "b"}}};
  EXPECT_EQ(file_change_of(to_json(change)), change);
}

TEST(NodeWire, MessagesSurviveAnyCutOfTheStream) {
  std::string all;
  for (const NodeMessage& message : one_of_each()) all += encode_node(message);
  for (const size_t piece : {1, 2, 7, 4096}) {
    NodeReader reader;
    std::string again;
    for (size_t at = 0; at < all.size(); at += piece) {
      reader.add(std::string_view(all).substr(at, piece));
      for (auto next = reader.next(); next && *next; next = reader.next()) {
        again += encode_node(**next);
      }
    }
    EXPECT_EQ(again, all) << piece;
    EXPECT_EQ(reader.waiting(), 0u);
  }
}

TEST(NodeWire, ReadMessagesAreNotKeptInMemory) {
  const std::string message = encode_node(StreamBytes{std::string(1000, 'b')});
  NodeReader reader;
  reader.add(message);
  for (int i = 0; i < 100; ++i) {
    // There is always another message, so the reader never catches up.
    reader.add(message);
    const auto next = reader.next();
    ASSERT_TRUE(next && *next);
    EXPECT_EQ(reader.waiting(), message.size());
    EXPECT_LE(reader.kept(), 3 * message.size());
  }
}

TEST(NodeWire, MalformedMessagesAreRejected) {
  for (const NodeMessage& message : one_of_each()) {
    const std::string text = encode_node(message);
    const char tag = text.front();
    const std::string body = text.substr(base::kFrameHead);
    if (std::holds_alternative<StreamBytes>(message)) continue;
    for (size_t length = 0; length < body.size(); ++length) {
      EXPECT_FALSE(decode_node(tag, std::string_view(body).substr(0, length)))
          << tag << " " << length;
    }
    EXPECT_FALSE(decode_node(tag, body + "x")) << tag;
  }
  for (const std::string& none : {std::string("?"), std::string("H\xa0"), std::string("s\xa0"),
                                  "H" + std::string(1 << 20, '\x81')}) {
    EXPECT_FALSE(decode_node(none.front(), none.substr(1)));
  }
}

TEST(NodeWire, FieldsOutOfBoundsAreRejected) {
  const auto decoded = [](const nlohmann::json& value, char kind) {
    std::string text;
    nlohmann::json::to_cbor(value, text);
    return decode_node(kind, text).ok();
  };
  EXPECT_TRUE(decoded({{"mode", 1}}, 't'));
  EXPECT_FALSE(decoded({{"mode", 2}}, 't'));
  EXPECT_FALSE(decoded({{"mode", -1}}, 't'));
  EXPECT_FALSE(decoded({{"mode", "1"}}, 't'));
  EXPECT_FALSE(decoded({{"code", 256}}, 'q'));
  EXPECT_FALSE(decoded({{"stream", -1}}, 'a'));
  EXPECT_FALSE(decoded({{"signal", int64_t{1} << 40}}, 'K'));
  EXPECT_FALSE(decoded({{"signal", UINT64_MAX}}, 'K'));
  EXPECT_FALSE(decoded(nlohmann::json::array({1}), 'K'));
}

TEST(NodeWire, AnImpossibleLengthBreaksTheStream) {
  NodeReader reader;
  reader.add(std::string("s\x01\0\0\x02", 5));
  EXPECT_FALSE(reader.next());
}

TEST(NodeWire, TheFirstLineNamesTheCaller) {
  const Caller caller{.gang = {.job_id = "job-1.a_B", .attempt = 12}};
  EXPECT_EQ(encode(caller), "MUSTER-NODE 1 job-1.a_B 12\n");
  const auto read = decode_caller(encode(caller));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, caller);
  for (const char* line :
       {"", "\n", "MUSTER-NODE 1 job-1\n", "MUSTER-NODE 1 job-1 0\n", "MUSTER-NODE 1 job-1 -1\n",
        "MUSTER-NODE 1 job-1 1x\n", "MUSTER-NODE 2 job-1 1\n", "MUSTER-NODE 1 ../job 1\n",
        "MUSTER-NODE 1 .. 1\n", "MUSTER-NODE 1 a/b 1\n", "MUSTER-NODE 1  1\n", "GET / HTTP/1.1\r\n",
        "MUSTER-NODE 1 job-1 99999999999\n"}) {
    EXPECT_FALSE(decode_caller(line)) << line;
  }
  EXPECT_FALSE(decode_caller("MUSTER-NODE 1 " + std::string(129, 'a') + " 1\n"));
}

TEST(NodeWire, TheFirstLineOfAServerNamesTheStream) {
  EXPECT_EQ(encode(ServerDial{.stream = 12}), "MUSTER-SERVER 1 12\n");
  EXPECT_EQ(decode_server_dial("MUSTER-SERVER 1 0\n")->stream, 0U);
  for (const char* line : {"", "\n", "MUSTER-SERVER 1\n", "MUSTER-SERVER 2 0\n",
                           "MUSTER-SERVER 1 -1\n", "MUSTER-SERVER 1 0 0\n", "MUSTER-NODE 1 0\n"}) {
    EXPECT_FALSE(decode_server_dial(line)) << line;
  }
}

}  // namespace
}  // namespace muster::engine::node
