#include "engine/shim/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/test_folder.h"
#include "engine/test_full_disk.h"

namespace muster::engine {
namespace {

TEST(ShimPlan, KeepsEveryByteOfItsTexts) {
  const ShimPlan plan{.wrapper = {"bwrap", "--as-pid-1"},
                      .inner = {.argv = {"sh", "\xff\xfe"},
                                .environment = {"A=it's\nhere\x01"},
                                .folder = "/tmp/\xe4",
                                .ssh_command = {"/usr/sbin/sshd", "-i"},
                                .own_process_tree = true},
                      .generated = "/generated",
                      .address = "127.16.0.1",
                      .port = 12345,
                      .serves = {{.port = 12346, .address = "127.16.0.1"}, {.port = 12347}},
                      .grace = std::chrono::seconds(3),
                      .tags_ranks = true,
                      .prepends_rank = true,
                      .log_quota = uint64_t{3} << 32,
                      .sampling = {.first = std::chrono::seconds(2),
                                   .interval = std::chrono::seconds(10),
                                   .nvml = "libnvidia-ml.so.1",
                                   .gpus = {"0", "GPU-1"}}};

  const auto read = decode_shim_plan(encode(plan));

  ASSERT_TRUE(read);
  EXPECT_EQ(read->wrapper, plan.wrapper);
  EXPECT_EQ(read->inner.argv, plan.inner.argv);
  EXPECT_EQ(read->inner.environment, plan.inner.environment);
  EXPECT_EQ(read->inner.folder, plan.inner.folder);
  EXPECT_EQ(read->inner.ssh_command, plan.inner.ssh_command);
  EXPECT_TRUE(read->inner.own_process_tree);
  EXPECT_EQ(read->generated, plan.generated);
  EXPECT_EQ(read->address, plan.address);
  EXPECT_EQ(read->port, plan.port);
  EXPECT_EQ(read->serves, plan.serves);
  EXPECT_EQ(read->grace, plan.grace);
  EXPECT_TRUE(read->tags_ranks && read->prepends_rank);
  EXPECT_EQ(read->log_quota, plan.log_quota);
  EXPECT_EQ(read->sampling, plan.sampling);
}

TEST(InnerPlan, KeepsTheLimitsAndTheFilterOfATask) {
  const InnerPlan plan{
      .filter = std::string("\x06\0\0\xff", 4),
      .limits = {.memory_bytes = int64_t{1} << 40,
                 .processes = 40,
                 .user_processes = 30,
                 .open_files = 50,
                 .file_bytes = 60,
                 .scratch_bytes = 70,
                 .scratch = {"/a/\xe4"},
                 .groups = {{.folder = "/g/task", .home = "/g", .settings = {{"pids.max", "40"}}}},
                 .cpus = {0, 130},
                 .niceness = 5,
                 .is_held_by_container = true}};

  const auto read = decode_inner_plan(encode(plan));

  ASSERT_TRUE(read);
  EXPECT_EQ(read->filter, plan.filter);
  EXPECT_EQ(read->limits, plan.limits);
}

TEST(InnerPlan, KeepsTheInputOfTheProgram) {
  const auto read = decode_inner_plan(encode(InnerPlan{.input = true, .terminal = true}));

  ASSERT_TRUE(read);
  EXPECT_TRUE(read->input && read->terminal);
}

TEST(InnerPlan, KeepsTheVariantsForEachMpi) {
  const launch::MpiChoice choice{
      .program = "mpiexec",
      .variants = {
          {job::MpiKind::kOpenMpi, {.environment = {{"OMPI_MCA_x", "1"}}, .files = {}}},
          {job::MpiKind::kMpich, {}},
          {job::MpiKind::kIntel, {.environment = {}, .files = {{"hostfile", "hostfile.\xff"}}}}}};

  const auto read =
      decode_inner_plan(encode(InnerPlan{.generated = "/generated",
                                         .mpi = choice,
                                         .takes_ranks = true,
                                         .taken_from = {{"hostfile", "hostfile.\xff"}}}));

  ASSERT_TRUE(read);
  EXPECT_EQ(read->generated, "/generated");
  EXPECT_EQ(read->mpi, choice);
  EXPECT_EQ(read->taken_from.at("hostfile"), "hostfile.\xff");
  EXPECT_TRUE(read->takes_ranks);
}

// A server of a new release enters tasks that an earlier release has started.
TEST(InnerPlan, ReadsThePlanOfAnEarlierRelease) {
  auto older = nlohmann::json::from_cbor(encode(InnerPlan{.argv = {"train"}}));
  ASSERT_EQ(older.erase("input") + older.erase("terminal") + older.erase("generated") +
                older.erase("takes_ranks"),
            4U);
  std::string text;
  nlohmann::json::to_cbor(older, text);

  const auto read = decode_inner_plan(text);

  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->argv, std::vector<std::string>{"train"});
  EXPECT_FALSE(read->input || read->terminal);
}

TEST(RunningFile, AppearsWithItsRecordOnly) {
  const base::TestFolder folder;
  RunningFile file;
  ASSERT_TRUE(file.reserve(folder / "running"));
  EXPECT_FALSE(std::filesystem::exists(folder / "running"));

  ASSERT_TRUE(file.write({.pid = 7, .start_ticks = 8, .started = base::Time()}));

  const auto text = base::read_file(folder / "running");
  ASSERT_TRUE(text);
  const auto record = decode_running(*text);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->pid, 7);
  EXPECT_EQ(record->start_ticks, 8U);
}

TEST(RunningFile, IsRefusedByAFullDiskBeforeTheTaskStarts) {
  const base::TestFolder folder;
  RunningFile file;
  const FullDisk full(100);
  EXPECT_FALSE(file.reserve(folder / "running"));
}

TEST(ExitRecord, IsReadFromItsPaddedFile) {
  const ExitRecord record{.status = {.code = 3,
                                     .signal = 9,
                                     .out_of_memory = true,
                                     .stopped = true,
                                     .error = "why",
                                     .limit = job::LimitReached{job::Limit::kMemory, 100, 101}},
                          .ended = base::Time(std::chrono::nanoseconds(123))};

  const auto read = decode_exit(encode(record) + std::string(1000, ' '));

  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, record.status);
  EXPECT_EQ(read->ended, record.ended);
}

TEST(ExitRecord, IsMissingWhileItsFileIsBlank) {
  EXPECT_EQ(decode_exit(std::string(4096, ' ')).error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(decode_exit("").error().code, base::ErrorCode::kNotFound);
}

TEST(Refusal, KeepsItsCodeAndWhetherTheSandboxFailed) {
  base::Error error{.code = base::ErrorCode::kRefused, .what = "bwrap: no namespaces"};
  EXPECT_EQ(base::detail_of<SandboxFailed>(read_refusal(refusal_text(error))), nullptr);

  error.detail = std::make_shared<const SandboxFailed>();
  const base::Error read = read_refusal(refusal_text(error));

  EXPECT_EQ(read.code, base::ErrorCode::kRefused);
  EXPECT_EQ(read.what, "bwrap: no namespaces");
  EXPECT_NE(base::detail_of<SandboxFailed>(read), nullptr);
}

TEST(Records, RejectMalformedText) {
  for (const char* text : {"{", "[]", "{\"code\":\"x\"}", "\xff", "nonsense"}) {
    EXPECT_FALSE(decode_exit(text)) << text;
    EXPECT_FALSE(decode_running(text)) << text;
    EXPECT_FALSE(decode_shim_plan(text)) << text;
    EXPECT_FALSE(decode_inner_plan(text)) << text;
  }
}

TEST(StartTicks, AreConstantForAProcessAndZeroForNone) {
  EXPECT_GT(start_ticks_of(::getpid()), 0U);
  EXPECT_EQ(start_ticks_of(::getpid()), start_ticks_of(::getpid()));
  EXPECT_EQ(start_ticks_of(0x7fffffff), 0U);
}

}  // namespace
}  // namespace muster::engine
