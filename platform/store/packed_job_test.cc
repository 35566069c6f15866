#include "store/packed_job.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/job_reader.h"
#include "store/records.h"
#include "store/test_values.h"

namespace muster::store {
namespace {

using job::Job;
using job::Phase;

Job ended_job(const std::string& id, const std::string& owner = "ada") {
  Job job = full_job(id, "train-" + id);
  job.phase = Phase::kSucceeded;
  job.owner = owner;
  // What is never stored.
  job.unreadable = false;
  job.progress.reset();
  job.kept_until.reset();
  return job;
}

TEST(PackedJob, AnUnpackedJobEqualsTheJobFieldByField) {
  for (const char* id : {"a", "b", "c"}) {
    const Job job = ended_job(id);
    const PackedJob packed(job, to_document(job));
    const auto whole = packed.job();
    ASSERT_TRUE(whole) << whole.error().what;
    EXPECT_EQ(*whole, job);
    EXPECT_EQ(packed.document(), to_document(job));
    EXPECT_EQ(packed.facts().id, id);
  }
}

TEST(PackedJob, TheFactsStayWhereTheyAreWhenItIsMoved) {
  const Job job = ended_job("a");
  PackedJob packed(job, to_document(job));
  const job::JobFacts facts = packed.facts();
  const PackedJob moved = std::move(packed);
  EXPECT_EQ(facts.name, "train-a");
  EXPECT_EQ(facts.name.data(), moved.facts().name.data());
}

TEST(PackedJob, ALargeDocumentIsRestored) {
  Job job = ended_job("a", "owner of a large job");
  uint32_t state = 1;
  std::string noise(100'000, '\0');
  for (char& each : noise) each = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  job.spec.command = {noise};
  const PackedJob packed(job, to_document(job));
  EXPECT_EQ(packed.document(), to_document(job));
}

TEST(PackedJob, ALaterJobOfAnOwnerTakesAFewHundredBytes) {
  const Job first = ended_job("a", "owner of two");
  const Job second = ended_job("b", "owner of two");
  const PackedJob one(first, to_document(first));
  const PackedJob other(second, to_document(second));
  EXPECT_LT(other.size(), 1000U);
  EXPECT_LT(other.size() - job::packed_size(other.address()), to_document(second).size() / 10);
}

TEST(PackedJob, ThreadsPackAndUnpackAtTheSameTime) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      for (int i = 0; i < 50; ++i) {
        const Job job = ended_job("j" + std::to_string(i), "owner" + std::to_string(i % 7));
        const PackedJob packed(job, to_document(job));
        EXPECT_EQ(packed.document(), to_document(job)) << number;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(StoredFacts, MakeThePackedJobWithoutItsDocumentBeingRead) {
  const Job job = ended_job("a");
  const std::string facts = stored_facts(job, 7);
  const PackedJob packed = PackedJob::from_row(facts, to_document(job), 7);
  ASSERT_TRUE(packed);
  EXPECT_EQ(*packed.job(), job);
  const PackedJob whole(job, to_document(job));
  const auto bytes = [](const PackedJob& each) {
    return std::string_view(each.address(), job::packed_size(each.address()));
  };
  EXPECT_EQ(bytes(packed), bytes(whole));
}

TEST(StoredFacts, OfAJobThatHasNotEndedThereAreNone) {
  Job job = ended_job("a");
  job.phase = Phase::kRunning;
  EXPECT_EQ(stored_facts(job, 7), "");
  EXPECT_FALSE(PackedJob::from_row("", to_document(job), 7));
}

TEST(StoredFacts, AreNotReadIfABitFlippedOrTheyBelongToAnotherDocumentOrVersion) {
  const Job job = ended_job("a");
  const std::string document = to_document(job);
  const std::string facts = stored_facts(job, 7);
  for (size_t i = 0; i < facts.size(); ++i) {
    std::string damaged = facts;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(PackedJob::from_row(damaged, document, 7)) << i;
    EXPECT_FALSE(PackedJob::from_row(facts.substr(0, i), document, 7)) << i;
  }
  EXPECT_FALSE(PackedJob::from_row(facts, document, 8));
}

// A store keeps these bytes. If this fails because their layout or meaning has changed, increment
// kPackedFactsVersion beside the new number.
TEST(StoredFacts, HaveTheBytesOfTheirVersion) {
  Job job = ended_job("a");
  EXPECT_EQ(job::kPackedFactsVersion, 1U);
  EXPECT_EQ(checksum_of({job::pack_facts(job)}), 4162534548);
}

/// Rows of jobs that own their bytes.
struct Rows {
  std::vector<Job> jobs;
  std::vector<std::string> documents;
  std::vector<int64_t> checksums;
  std::vector<std::string> facts;

  void add(Job job) {
    documents.push_back(to_document(job));
    checksums.push_back(checksum_of(job, documents.back()));
    facts.push_back(stored_facts(job, checksums.back()));
    jobs.push_back(std::move(job));
  }
  RecordRow at(size_t i) const {
    return {.key = {jobs[i].id, jobs[i].spec.project, jobs[i].spec.name},
            .document = documents[i],
            .checksum = checksums[i],
            .facts = facts[i]};
  }
};

/// The ids in order; of a record that cannot be read in brackets.
std::vector<std::string> ids_of(const Contents& contents) {
  std::vector<std::string> ids;
  const auto unreadable = [&](size_t before) {
    for (const Unreadable& record : contents.unreadable) {
      if (record.jobs_before == before) ids.push_back("(" + record.id + ")");
    }
  };
  for (size_t i = 0; i < contents.stored.size(); ++i) {
    unreadable(i);
    const StoredJob& job = contents.stored[i];
    ids.emplace_back(job.open ? job.open->id : std::string(job.ended.facts().id));
  }
  unreadable(contents.stored.size());
  return ids;
}

TEST(JobReader, ReadsTheSameJobsInTheSameOrderAsOneThread) {
  Rows rows;
  for (int i = 0; i < 3000; ++i) {
    Job job = ended_job("j" + std::to_string(i));
    if (i % 5 == 0) job.phase = Phase::kQueued;
    rows.add(std::move(job));
    if (i % 700 == 3) rows.documents.back().back() ^= 1;  // a bit flips
    if (i % 900 == 5) {                                   // not a document, with a right checksum
      rows.documents.back() = "no document";
      rows.checksums.back() = checksum_of(rows.jobs.back(), rows.documents.back());
    }
    if (i % 400 == 7) rows.facts.back().back() ^= 1;
    if (i % 400 == 9) rows.facts.back().clear();  // of an earlier release
  }
  Contents plain;
  Contents parallel;
  {
    JobReader reader(parallel);
    for (size_t i = 0; i < rows.jobs.size(); ++i) {
      take_job(rows.at(i), plain);
      reader.add(rows.at(i));
    }
    reader.finish();
  }
  EXPECT_EQ(parallel.unreadable.size(), 9U);
  EXPECT_EQ(ids_of(parallel), ids_of(plain));
  for (size_t i = 0; i < parallel.stored.size(); ++i) {
    const StoredJob& job = parallel.stored[i];
    const bool is_open = job.open != nullptr;
    EXPECT_EQ(is_open, plain.stored[i].open != nullptr);
    if (is_open) {
      EXPECT_EQ(*job.open, *plain.stored[i].open);
    } else {
      EXPECT_EQ(*job.ended.job(), *plain.stored[i].ended.job());
    }
  }
}

TEST(JobReader, ReadsAllRowsWithTheThreadsThatCanBeStarted) {
  Rows rows;
  std::vector<std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    rows.add(ended_job("j" + std::to_string(i)));
    expected.push_back("j" + std::to_string(i));
  }
  for (const int startable : {0, 1}) {
    Contents contents;
    int asked = 0;
    JobReader reader(contents, [&](std::function<void()> work) {
      if (asked++ < startable) return std::thread(std::move(work));
      throw std::system_error(EAGAIN, std::generic_category());
    });
    for (size_t i = 0; i < rows.jobs.size(); ++i) reader.add(rows.at(i));
    reader.finish();
    EXPECT_EQ(ids_of(contents), expected) << startable;
  }
}

TEST(JobReader, MayEndBeforeAllRowsAreRead) {
  Rows rows;
  for (int i = 0; i < 1000; ++i) rows.add(ended_job("j" + std::to_string(i)));
  Contents contents;
  JobReader reader(contents);
  for (size_t i = 0; i < rows.jobs.size(); ++i) reader.add(rows.at(i));
}

}  // namespace
}  // namespace muster::store
