// A server is killed while a gang resizes, and the next server adopts the gang.
#include <algorithm>

#include "control/test_deaths.h"
#include "control/test_resizing.h"
#include "logs/log_follower.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::Phase;
using job::TaskPhase;

class ResizingTakenUp : public ResizingGang {
 protected:
  ResizingTakenUp() {
    add(project_of("team-a", 4));
    add(project_of("team-b", 0));
  }
};

TEST_F(ResizingTakenUp, AGangGrowsUnderANewServer) {
  submit(single("owner", "team-a", 2));
  submit(live("dist", "team-b", 1, 4));
  ASSERT_EQ(workers_of("dist").size(), 2U);
  come_back();
  EXPECT_EQ(job("dist").reason, "runs with 2 of 4 workers");

  end("owner");

  EXPECT_EQ(workers_of("dist").size(), 4U);
  EXPECT_EQ(job("dist").attempt, 1);
}

TEST_F(ResizingTakenUp, ANewcomerHasTheKeysOfItsGang) {
  submit(single("owner", "team-a", 2));
  submit(live("dist", "team-b", 1, 4));
  come_back();
  end("owner");

  const auto file = [&](const std::string& worker, const std::string& path) {
    for (const launch::PlannedFile& one : engine_.plans.at({gang("dist"), worker}).files) {
      if (one.path == path) return one.content;
    }
    return std::string();
  };
  const bool by_ssh = !file("worker-0", "ssh/id_ed25519").empty();
  const std::string key = by_ssh ? "ssh/id_ed25519" : "rsh/key";
  ASSERT_FALSE(file("worker-0", key).empty());
  EXPECT_EQ(file("worker-0", key), file("worker-3", key));
}

TEST_F(ResizingTakenUp, TheSharedKeyOfItsWorkersIsStoredEncryptedUntilTheAttemptEnds) {
  submit(live("dist", "team-b", 1, 4));
  const std::string sealed = store_.load()->jobs.back().sealed_seed;

  ASSERT_FALSE(sealed.empty());
  EXPECT_EQ(sealed.find("loopback"), std::string::npos);
  end("dist");
  EXPECT_TRUE(store_.load()->jobs.back().sealed_seed.empty());
}

TEST_F(ResizingTakenUp, JobsThatDoNotResizeStoreNoKey) {
  submit(mpi("plain", "team-b", 2));
  EXPECT_TRUE(job("plain").sealed_seed.empty());
}

TEST_F(ResizingTakenUp, IfTheServersKeyHasChangedAGangOnlyShrinksAndReportsTheReason) {
  submit(single("owner", "team-a", 1));
  submit(live("dist", "team-b", 1, 4));
  ASSERT_EQ(workers_of("dist").size(), 3U);
  const access::SecretBox other(key_of(2));
  be_killed();
  make_with(other);
  controller_->set_resize_pace(pace_);
  ASSERT_TRUE(controller_->recover());
  settle();
  EXPECT_TRUE(noted("dist", "no more workers can join: the keys of the job are not available"));

  end("owner");
  EXPECT_EQ(workers_of("dist").size(), 3U) << "nobody joins";
  clock_.advance(std::chrono::minutes(5));
  lose("dist", "worker-1", kKilled);
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-2"}));
  for (const char* name : {"one", "two", "third"}) submit(single(name, "team-a", 1));

  EXPECT_EQ(job("third").phase, Phase::kRunning);
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0"}));
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(
      std::count_if(job("dist").events.begin(), job("dist").events.end(),
                    [](const job::Event& event) {
                      return words::sentence(event.what).starts_with("no more workers can join");
                    }),
      1);
}

TEST_F(ResizingTakenUp, ALeavingWorkerIsStoppedAndKeepsItsResourcesUntilItHasEnded) {
  engine_.stops_obey = false;
  submit(live("dist", "team-b", 1, 4));
  submit(single("owner", "team-a", 1));
  ASSERT_TRUE(task("dist", "worker-3").left);
  engine_.calls.clear();

  come_back();

  EXPECT_TRUE(called("dist", "stop", "worker-3 gracefully"));
  EXPECT_EQ(job("owner").phase, Phase::kQueued);
  EXPECT_EQ(workers_of("dist").size(), 3U) << "nobody else has to go for it";
  lose("dist", "worker-3", {.signal = 15, .stopped = true});
  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
}

TEST_F(ResizingTakenUp, MembersReceiveTheListOfMembersAgain) {
  submit(live("dist", "team-b", 1, 3));
  engine_.file_changes.clear();

  come_back();

  EXPECT_EQ(sent_hosts("dist"),
            "dist-worker-0 slots=1\ndist-worker-1 slots=1\ndist-worker-2 slots=1\n");
}

TEST_F(ResizingTakenUp, AWorkerThatWasLostWithoutAServerIsReplaced) {
  submit(live("dist", "team-b", 1, 3));
  engine_.ends[{gang("dist"), "worker-1"}] = kKilled;
  engine_.running.erase({gang("dist"), "worker-1"});

  come_back();

  EXPECT_TRUE(noted("dist", "worker-1 was lost"));
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-2", "worker-3"}));
  EXPECT_EQ(job("dist").attempt, 1);
}

TEST_F(ResizingTakenUp, TheLogOfAWorkerThatLeftStaysReadable) {
  engine_.logs = {{"worker-0", "hello from 0\n"}, {"worker-3", "hello from 3\n"}};
  submit(live("dist", "team-b", 1, 4));
  submit(single("owner", "team-a", 1));
  ASSERT_TRUE(task("dist", "worker-3").left);

  const auto follower = controller_->follow_logs("dist", {});
  std::string text;
  bool over = false;
  while (!over) {
    follower->pull([&](const job::LogBatch& batch, bool end) {
      text += batch.bytes();
      over = end;
    });
    turn();
  }

  EXPECT_NE(text.find("hello from 3"), std::string::npos) << text;
}

// --- killed at any commit of growing, shrinking and losing

class KilledWhileResizing : public ResizingGang {
 protected:
  /// Each step can be repeated by a server that finds it done.
  void story() {
    for (const auto& [name, gpus] : {std::pair("team-a", 4), std::pair("team-b", 0)}) {
      if (!controller_->projects().status(name)) add(project_of(name, gpus));
    }
    once(single("first", "team-a", 2));
    once(live("dist", "team-b", 1, 4));
    end_once("first");
    once(single("second", "team-a", 1));
    settle();
    if (!job::is_final(job("second").phase)) {
      EXPECT_EQ(job("second").phase, Phase::kRunning);
      EXPECT_EQ(workers_of("dist").size(), 3U);
    }
    EXPECT_EQ(job("dist").restarts, 0);
    end_once("second");
    settle();
    if (!job::is_final(job("dist").phase)) {
      EXPECT_EQ(workers_of("dist").size(), 4U);
      engine_.end_for_good(gang("dist"), "launcher", {});
      settle();
    }
    EXPECT_EQ(job("dist").phase, Phase::kSucceeded);
    EXPECT_TRUE(engine_.running.empty());
  }

  void once(const job::JobSpec& spec) {
    ASSERT_TRUE(controller_->submit(spec, "key-" + spec.name));
    settle();
  }
  void end_once(const std::string& name) {
    settle();
    if (!job::is_final(job(name).phase)) end(name);
  }

  void story_with_a_death() {
    if (!dies_in(store_, [this] { story(); })) return;
    come_back();
    story();
    expect_no_task_was_started_twice(engine_);
  }
};

class KilledWhileResizingAt : public KilledWhileResizing,
                              public testing::WithParamInterface<int> {};

TEST_P(KilledWhileResizingAt, BeforeThisCommitLosesNothing) {
  ASSERT_TRUE(controller_->recover());
  store_.dies_before = store_.commits + GetParam();
  story_with_a_death();
}

TEST_P(KilledWhileResizingAt, AfterThisCommitLosesNothing) {
  ASSERT_TRUE(controller_->recover());
  store_.dies_after = store_.commits + GetParam();
  story_with_a_death();
}

INSTANTIATE_TEST_SUITE_P(EveryCommit, KilledWhileResizingAt, testing::Range(1, 45));

}  // namespace
}  // namespace muster::control
