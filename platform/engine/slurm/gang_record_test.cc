#include "engine/slurm/gang_record.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/random.h"
#include "base/test_folder.h"
#include "base/test_loop.h"

namespace muster::engine::slurm {
namespace {

GangRecord some_record() {
  base::SystemRandom random;
  lent::GangRecord common{
      .key = random.bytes<32>(),
      .seats = {{.task = "main",
                 .component = 1,
                 .index = 2,
                 .gpus = 3,
                 .may_be_missing = true,
                 .node = "n1",
                 .address = "10.0.0.1",
                 .shares_folder = true,
                 .started = true,
                 .start = 4,
                 .has_artifacts = true,
                 .left = true}},
      .given = true,
      .taken = AllocationRevoked{.why = AllocationRevoked::Why::kNodeLost,
                                 .end = job::SlurmEnded{.cause = job::SlurmEnded::Cause::kNodeDown,
                                                        .slurm_job = 17,
                                                        .nodes = {"n1"}},
                                 .advice = "none",
                                 .node = "n1",
                                 .printed = {"srun: error"}},
      .queued_again = true,
      .given_back = true};
  return {.common = std::move(common),
          .job = {.submitted_attempt = 2,
                  .comment = "muster:0123456789abcdef:job1:2",
                  .shape = "[1]",
                  .id = 17,
                  .former = {15, 16},
                  .restarts = 1}};
}

TEST(GangRecords, AreReadAsTheyWereWritten) {
  const GangRecord record = some_record();
  const auto read = decode_gang_record(encode(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, record);
}

TEST(GangRecords, ThatAreBrokenAreReportedWithoutTheirContent) {
  const GangRecord record = some_record();
  const std::string whole = encode(record);
  const std::string key = base::to_hex(record.common.key);
  for (const size_t length : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 2}) {
    const auto read = decode_gang_record(whole.substr(0, length));
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().to_string().find(key), std::string::npos);
  }
}

class KeptRecords : public testing::TestWithParam<int> {};

TEST_P(KeptRecords, AreReadableByTheNextServerOnly) {
  const base::TestFolder folder;
  base::TestLoop loop;
  lent::RecordWriter keeper(loop.loop());
  const GangRecord record = some_record();
  int kept = 0;
  for (int i = 0; i < GetParam(); ++i) {
    const auto attempt = folder / ("job" + std::to_string(i)) / "2";
    ASSERT_TRUE(base::make_private_folder(attempt));
    keeper.keep(gang_record_in(attempt), encode(record), [&](const base::Result<void>& how) {
      EXPECT_TRUE(how);
      ++kept;
      loop.look();
    });
  }

  ASSERT_TRUE(loop.run_until([&] { return kept == GetParam(); }));

  const auto found = gang_records_in(folder);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), static_cast<size_t>(GetParam()));
  for (const auto& [gang, each] : *found) {
    EXPECT_EQ(gang.attempt, 2);
    ASSERT_TRUE(each);
    EXPECT_EQ(*each, record);
    const auto path = gang_record_in(folder / gang.job_id / "2");
    EXPECT_EQ(std::filesystem::status(path).permissions(),
              static_cast<std::filesystem::perms>(0600));
  }
}

INSTANTIATE_TEST_SUITE_P(Many, KeptRecords, testing::Values(1, 3, 50));

// A listing of a link to itself fails, also for root. Otherwise the gang's Slurm job would be cancelled.
TEST(GangRecords, AreNotReadIfAFolderCannotBeListed) {
  const base::TestFolder folder;
  std::filesystem::create_symlink("lost+found", folder / "lost+found");
  ASSERT_TRUE(gang_records_in(folder)) << "it is no folder of a job";
  EXPECT_TRUE(gang_records_in(folder / "missing")) << "as in a new state folder";
  std::filesystem::create_symlink("job1", folder / "job1");

  EXPECT_FALSE(gang_records_in(folder));
  EXPECT_FALSE(gang_records_in(folder / "job1"));
  EXPECT_FALSE(substitute_record("owner", {"job1", 1}, folder / "job1"));
}

TEST(RecordWriters, NameRecordsThatCannotBeWritten) {
  const base::TestFolder folder;
  base::TestLoop loop;
  lent::RecordWriter keeper(loop.loop());
  std::vector<bool> outcomes(2);
  int kept = 0;
  ASSERT_TRUE(base::make_private_folder(folder / "job1" / "1"));
  const auto keep = [&](const std::filesystem::path& attempt, size_t number) {
    keeper.keep(gang_record_in(attempt), encode(some_record()),
                [&, number](const base::Result<void>& how) {
                  outcomes[number] = how.ok();
                  ++kept;
                  loop.look();
                });
  };
  keep(folder / "nobody" / "1", 0);
  keep(folder / "job1" / "1", 1);

  ASSERT_TRUE(loop.run_until([&] { return kept == 2; }));

  EXPECT_EQ(outcomes, (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace muster::engine::slurm
