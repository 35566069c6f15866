// The sentence of every fact for an admin and for members of the concerned projects: "mine" has the
// job, "theirs" competes with it, and "org" is the parent of both. A stranger is a member of none.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "job/fact_json.h"
#include "words/sentence.h"
#include "words/sight.h"

namespace muster::words {
namespace {

using job::Evicted;
using job::Fact;
using job::JobRef;
using job::KubernetesEnded;
using job::Notice;
using job::ProjectRef;
using job::ProjectShare;
using job::Resource;
using job::SlurmEnded;
using job::SlurmState;
using job::SlurmWaits;

/// The reader gets the same sentence as an admin.
constexpr const char* kSame = "";

struct Row {
  Fact fact;
  std::string admin;
  std::string mine = kSame;
  std::string theirs = kSame;
  std::string org = kSame;
  std::string stranger = kSame;
};

const job::PodEnd kEvictedByKueue{.cause = job::PodEnd::Cause::kQueueEvicted,
                                  .pod = "muster-1",
                                  .node = "n1",
                                  .word = "WorkloadEvictedDueToPreempted",
                                  .text = "Preempted to accommodate a workload"};
const JobRef kMine{.id = "id-dist", .name = "dist", .project = "mine"};
const JobRef kTheirs{.id = "id-spy", .name = "spy", .project = "theirs"};
const ProjectRef kAbove{.name = "org", .above = "mine"};

ProjectShare share(const std::string& project) {
  return {.project = {.name = project},
          .uses = {2000, 0, 0},
          .quota = {1000, 0, 0},
          .fair_share = {1000, 0, 0},
          .priority = 100};
}

std::string share_words(const std::string& project) {
  return "project " + project + " uses 2 GPUs (quota 1 GPU, fair share 1 GPU, priority 100)";
}

/// The project of a row is visible to its own members, and to those of org above it.
Sight sight_of(const std::string& reader) {
  const auto sees = [reader](const std::string& project) {
    return project == reader || (reader == "org" && (project == "mine" || project == "theirs"));
  };
  return {.project = sees, .job = [sees](const JobRef& job) { return sees(job.project); }};
}

std::vector<Row> eviction_rows() {
  const std::string evicted = "was evicted for ";
  const std::string claims = ", which claims its share";
  const std::string spy = "'spy' of project theirs";
  const std::string hidden = "a job of another project";
  const std::string both = ": " + share_words("mine") + "; " + share_words("theirs");
  return {
      {Evicted{.why = job::SuspendedByUser{}, .stage = Evicted::Stage::kBeingEnded},
       "is being ended; it was suspended"},
      {Evicted{.why = job::Reclaimed{.by = kTheirs,
                                     .shares = {share("mine"), share("theirs")},
                                     .compared = {Resource::kGpu}}},
       evicted + spy + claims + both, evicted + hidden + claims + ": " + share_words("mine"),
       evicted + spy + claims + ": " + share_words("theirs"), kSame, evicted + hidden + claims},
      {Evicted{.why = job::Reclaimed{.by = kTheirs, .expected = true}},
       "would be evicted for " + spy + claims, "would be evicted for " + hidden + claims, kSame,
       kSame, "would be evicted for " + hidden + claims},
      {Evicted{.why = job::Preempted{.by = kMine, .by_priority = 9, .priority = 1},
               .stage = Evicted::Stage::kWaitsAgain},
       "was preempted by 'dist' (priority 9) of the same project; this job has priority 1; waits "
       "to start again",
       kSame,
       "was preempted by another job (priority 9) of the same project; this job has priority 1; "
       "waits to start again",
       kSame,
       "was preempted by another job (priority 9) of the same project; this job has priority 1; "
       "waits to start again"},
      {Evicted{.why = job::Moved{.so_that = kTheirs}},
       "is moved so that " + spy + " fits; it restarts on other nodes at once",
       "is moved so that " + hidden + " fits; it restarts on other nodes at once", kSame, kSame,
       "is moved so that " + hidden + " fits; it restarts on other nodes at once"},
      {Evicted{.why = job::Moved{.so_that = kTheirs, .expected = true}},
       "would be moved so that " + spy + " fits; it would restart on other nodes at once",
       "would be moved so that " + hidden + " fits; it would restart on other nodes at once", kSame,
       kSame,
       "would be moved so that " + hidden + " fits; it would restart on other nodes at once"},
      {Evicted{.why = job::Stale{.running = 1, .minimum = 3, .grace = std::chrono::minutes(1)}},
       "was evicted: only 1 of its 3 required tasks ran for more than 1m"},
      {Evicted{.why = job::NodeDrained{"n1"}}, "was evicted: node n1 is being drained"},
      {Evicted{.why = job::TooFewWorkers{2}}, "has fewer workers left than its minimum of 2"},
      {Evicted{.why = SlurmEnded{.cause = SlurmEnded::Cause::kPreempted, .slurm_job = 17},
               .stage = Evicted::Stage::kBeingEnded},
       "is being ended: Slurm has ended its Slurm job 17 for another job (PREEMPTED)"},
      {Evicted{.why = KubernetesEnded{.pod = kEvictedByKueue},
               .stage = Evicted::Stage::kBeingEnded},
       "is being ended: Kueue evicted its pods: Preempted to accommodate a workload "
       "(WorkloadEvictedDueToPreempted)"},
      {Evicted{.why = KubernetesEnded{.pod = kEvictedByKueue},
               .stage = Evicted::Stage::kWaitsAgain},
       "Kueue evicted its pods: Preempted to accommodate a workload "
       "(WorkloadEvictedDueToPreempted); waits to start again"},
      {Evicted{.why = job::Remark{"was evicted by a newer server"}},
       "was evicted by a newer server"},
  };
}

std::vector<Row> waiting_rows() {
  const job::OverCapacity limit{.job = "dist",
                                .project = kAbove,
                                .resource = Resource::kGpu,
                                .bound = 4000,
                                .allocated = 3000,
                                .requested = 2000};
  const std::string bound = " has a limit of 4 GPUs, with 3 GPUs allocated: 1 GPU too many";
  const std::string kept = ", which is ahead of it in the queue and could not start otherwise";
  const std::string hidden = "resources are free, but reserved for a job of another project" + kept;
  const job::Holders jobs{
      .named = {{.job = kTheirs, .amount = 3000}, {.job = kMine, .amount = 1000}}};
  const job::Holders projects{
      .named = {{.project = "theirs", .amount = 3000}, {.project = "mine", .amount = 2000}},
      .more = 2,
      .more_amount = 4000};
  return {
      {job::Remark{"kept for 'spy' of project theirs"}, "kept for 'spy' of project theirs"},
      {Notice{Notice::What::kNotItsTurn}, "waits for its turn in the queue"},
      {limit, "'dist' requests 2 GPUs, but project org (above mine)" + bound,
       "'dist' requests 2 GPUs, but a project above mine" + bound,
       "'dist' requests 2 GPUs, but another project" + bound, kSame,
       "'dist' requests 2 GPUs, but another project" + bound},
      {job::NoRoom{.tasks = 2,
                   .placed = 1,
                   .claim = {.gpus = 1},
                   .nodes = 1,
                   .free_gpu_milli = 1000,
                   .largest_free_gpu_milli = 1000,
                   .lack_gpu = 1},
       "needs 2 tasks with 1 GPU each; room for 1 of 2: the only node lacks GPUs (1 GPU free)"},
      {job::NoRoom{.tasks = 1,
                   .claim = {.gpus = 1},
                   .silent = 1,
                   .faults = {{.node = "n1", .fault = "host 'n1' cannot be used: no route"}},
                   .pools = {"default"}},
       "needs 1 GPU; the only node that it may use does not answer (pool default): host 'n1' "
       "cannot be used: no route"},
      {job::NoProject{.project = "mine", .has_children = true},
       "project mine has subprojects; submit to a project without subprojects"},
      {job::Reserved{kTheirs}, "resources are free, but reserved for 'spy'" + kept, hidden, kSame,
       kSame, hidden},
      {job::Promised{.tasks = 3, .leaving = {12}},
       "nodes are reserved for 3 tasks of it; 12 tasks of other jobs are still stopping there",
       "nodes are reserved for 3 tasks of it; tasks of other jobs are still stopping there",
       "nodes are reserved for 3 tasks of it; tasks of other jobs are still stopping there",
       "nodes are reserved for 3 tasks of it; tasks of other jobs are still stopping there",
       "nodes are reserved for 3 tasks of it; tasks of other jobs are still stopping there"},
      {job::AfterEvictions{{2}}, "starts when 2 other jobs have released their resources",
       "starts when other jobs have released their resources",
       "starts when other jobs have released their resources",
       "starts when other jobs have released their resources",
       "starts when other jobs have released their resources"},
      {job::TriedAgain{5}, "is retried in 5 s"},
      {job::HeldByOthers{.holders = jobs},
       "held by job: 'spy' of theirs (3 GPUs) and 'dist' of mine (1 GPU)",
       "held by job: 'dist' of mine (1 GPU) and others",
       "held by job: 'spy' of theirs (3 GPUs) and others", kSame, "held by project: others"},
      {job::HeldByOthers{.below = ProjectRef{.name = "org"}, .holders = projects},
       "below project org, theirs holds 3 GPUs, mine holds 2 GPUs and 2 others 4 GPUs",
       "below a parent project, mine holds 2 GPUs and others",
       "below a parent project, theirs holds 3 GPUs and others",
       "below project org, theirs holds 3 GPUs, mine holds 2 GPUs and others",
       "below a parent project, others"},
  };
}

std::vector<Row> life_rows() {
  const job::Workers workers{2, 4};
  return {
      {job::Suspended{.job = "dist", .held = true}, "is held; muster resume dist starts it"},
      {job::Placed{.nodes = {"n1", "n2"}, .slurm_job = 17, .attempt = 2, .workers = workers},
       "placed on n1, n2 (Slurm job 17), attempt 2, with 2 of 4 workers"},
      {job::PhaseReached{job::Phase::kFailed}, "Failed"},
      {job::Failed{job::TaskFailed{.task = "worker-0", .exit = {.code = 1}}},
       "worker-0 exited with code 1"},
      {job::Failed{job::TaskFailed{.task = "worker-1",
                                   .is_rank = true,
                                   .rank = 1,
                                   .exit = {.code = 1},
                                   .clue = "ValueError: nan",
                                   .third_loss_within = std::chrono::minutes(1)}},
       "rank 1 on worker-1 exited with code 1: ValueError: nan; the third worker in a row that was "
       "lost within 1m of its start"},
      {job::Failed{
           job::TaskFailed{.task = "master", .exit = {.code = 1}, .exited_before = "worker-1"}},
       "master exited with code 1; worker-1 had exited with code 0 before"},
      {job::Failed{job::WorkerUnreachable{
           .host = "10.0.0.7", .launcher = "launcher", .exit = {.code = 205}}},
       "the worker at 10.0.0.7: mpirun's daemon there (orted) or its remote shell session ended; "
       "launcher exited with code 205"},
      {job::Failed{job::Remark{"no image 'tf:2'"}}, "no image 'tf:2'"},
      {job::Failed{SlurmEnded{.text = "Slurm took its room"}}, "Slurm took its room"},
      {job::Failed{KubernetesEnded{.text = "its pods did not start within 1m"}},
       "its pods did not start within 1m"},
      {job::Failed{job::TimeLimitReached{std::chrono::hours(2)}},
       "ran longer than its time limit of 2h"},
      {job::Failed{
           job::NoSshAnswer{.task = "worker-0", .bound = std::chrono::seconds(30), .others = 2}},
       "worker-0 did not answer on its ssh port within 30s (nor did 2 other tasks)"},
      {job::Failed{
           job::RanksAstray{.fault = job::RanksAstray::Fault::kTooFewStarted, .ranks = 2, .of = 4}},
       "only 2 of 4 ranks started"},
      {job::RanksAstray{
           .fault = job::RanksAstray::Fault::kOnLauncher, .ranks = 4, .is_certain = false},
       "all 4 ranks run on the launcher and none on a worker"},
      {job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kNodeGone, .node = "n1"},
       "node n1 is gone; the job restarts on other nodes"},
      {job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kEngineAway, .error = "no"},
       "no; the job is retried"},
      {job::FetchesImage{
           .node = "n1", .image = "tf:2", .done_megabytes = 312, .all_megabytes = 940},
       "n1 fetches tf:2 (312 of 940 MB)"},
      {job::StartsAgain{.cause = job::TaskFailed{.task = "worker-0", .exit = {.code = 1}},
                        .retry = {.number = 1, .of = 3, .by_rule = true, .exit_code = 1}},
       "worker-0 exited with code 1; starts again: the rule for exit code 1: retry 1 of 3"},
      {job::StartsAgain{.cause = job::TaskFailed{.task = "worker-0", .exit = {.code = 1}},
                        .retry = {.number = 1, .of = 3}},
       "worker-0 exited with code 1; starts again: retry 1 of 3"},
      {job::EveryWorkerAnswers{"launcher"}, "all workers answer; the launcher starts"},
      {job::ImageNotRun{.image = "tf", .has_stand_in = true},
       "this engine does not run images: its tasks use this machine's files instead of 'tf', and "
       "run the command that is configured for it"},
      {job::LooksForImages{{"a", "b"}}, "checks for images a, b"},
      {job::ImagesThere{std::chrono::seconds(3)}, "its images are present after 3s"},
      {job::NodeSilence{.node = "n1", .silent = false}, "node n1 answers again"},
      {job::WorkersLeave{
           .tasks = {"worker-2"}, .why = job::Reclaimed{.by = kTheirs}, .left = workers},
       "worker-2 leaves: it was evicted for 'spy' of project theirs, which claims its share; the "
       "job continues with 2 of 4 workers",
       "worker-2 leaves: it was evicted for a job of another project, which claims its share; the "
       "job continues with 2 of 4 workers",
       kSame, kSame,
       "worker-2 leaves: it was evicted for a job of another project, which claims its share; the "
       "job continues with 2 of 4 workers"},
      {job::WorkerLost{.task = "worker-1", .exit = {.code = 1}, .left = workers},
       "worker-1 was lost: it exited with code 1; the job continues with 2 of 4 workers"},
      {job::WorkerJoins{.task = "worker-4", .node = "n2", .now = workers},
       "worker-4 joins on n2: 2 of 4 workers"},
      {job::WorkerDidNotJoin{.what = "worker-4 could not join: it exited with code 1"},
       "worker-4 could not join: it exited with code 1"},
      {job::Runs{.workers = workers,
                 .silent = {{.node = "n1", .since = "2026-01-01T00:00:00Z"}},
                 .in_slurm = SlurmState{.slurm_job = 6}},
       "runs with 2 of 4 workers; node n1 has not answered since 2026-01-01T00:00:00Z; Slurm has "
       "suspended it (job 6)"},
  };
}

std::vector<Row> slurm_rows() {
  return {
      {SlurmWaits{.stage = SlurmWaits::Stage::kPending,
                  .slurm_job = 6,
                  .reason = "Resources",
                  .text = "the resources that it needs are in use"},
       "waits in Slurm as job 6: the resources that it needs are in use (Resources)"},
      {SlurmWaits{.stage = SlurmWaits::Stage::kConfiguring, .slurm_job = 6, .nodes = {"n1", "n2"}},
       "its Slurm job 6 starts: Slurm is booting or preparing n1, n2 (CONFIGURING)"},
      {job::SlurmQueue{.partition = "gpu", .qos = "high"}, "in Slurm: partition gpu, QOS high"},
      {SlurmState{.what = SlurmState::What::kEnding, .slurm_job = 6, .over = true},
       "Slurm is no longer ending it (job 6)"},
      {SlurmEnded{.cause = SlurmEnded::Cause::kCancelled, .slurm_job = 6, .user = "ada"},
       "its Slurm job 6 was cancelled in Slurm by ada"},
      {SlurmEnded{.cause = SlurmEnded::Cause::kForgotten, .slurm_job = 6},
       "Slurm has no record of job 6 any more"},
      {SlurmEnded{.cause = SlurmEnded::Cause::kForgotten, .slurm_job = 0},
       "Slurm has no record of its job any more"},
      {SlurmWaits{.stage = SlurmWaits::Stage::kEarlier, .slurm_job = 0},
       "waits for Slurm to end its earlier job"},
      {job::RequestsAllocation{
           .cluster = "Slurm",
           .after = SlurmEnded{.cause = SlurmEnded::Cause::kNodeFailed, .slurm_job = 6}},
       "a node of its Slurm job 6 failed (NODE_FAIL); asks Slurm for an allocation"},
      {KubernetesEnded{.pod = job::PodEnd{.cause = job::PodEnd::Cause::kPreempted,
                                          .pod = "muster-1",
                                          .node = "n1",
                                          .word = "PreemptionByScheduler",
                                          .text = "preempting to accommodate a pod"}},
       "Kubernetes preempted its pod on node n1 for a pod of higher priority: preempting to "
       "accommodate a pod (PreemptionByScheduler)"},
      {job::RequestsAllocation{.cluster = "Kubernetes",
                               .after = KubernetesEnded{.pod = kEvictedByKueue}},
       "Kueue evicted its pods: Preempted to accommodate a workload "
       "(WorkloadEvictedDueToPreempted); asks Kubernetes for an allocation"},
      {job::ClusterDecides{.cluster = "Slurm", .tasks = 3},
       "Slurm decides when it starts; Muster would request an allocation for 3 tasks"},
      {job::KubernetesWaits{.stage = job::KubernetesWaits::Stage::kUnschedulable,
                            .task = "worker-1",
                            .others = 1,
                            .word = "Unschedulable",
                            .text = "0/1 nodes are available"},
       "the pod of worker-1 waits for a node: 0/1 nodes are available (Unschedulable); 1 other pod "
       "does not run yet"},
  };
}

std::vector<Row> dependency_rows() {
  const std::string another = "a job of another project";
  return {
      {job::WaitsForJobs{
           .jobs = {{.job = kMine}, {.job = kMine, .condition = job::Dependency::Condition::kAny}}},
       "starts when 'dist' has succeeded and 'dist' has ended", kSame,
       "starts when " + another + " has succeeded and " + another + " has ended", kSame,
       "starts when " + another + " has succeeded and " + another + " has ended"},
      {job::WaitsUntil{.begin = base::Time(std::chrono::seconds(1'800'000'000))},
       "does not start before 2027-01-15T08:00:00Z"},
      {job::WaitsForIsolation{.owner = "ada"},
       "starts when the server listens for users again; this server would not isolate a job of "
       "user "
       "'ada'"},
      {job::WaitsForSingleton{.job = kMine, .singleton = "nightly"},
       "starts when 'dist' has ended; both have singleton 'nightly'", kSame,
       "starts when " + another + " has ended; both have singleton 'nightly'", kSame,
       "starts when " + another + " has ended; both have singleton 'nightly'"},
      {job::Failed{job::DependencyUnmet{.awaited = {.job = kMine}, .phase = job::Phase::kFailed}},
       "did not start: 'dist' had to succeed, but failed", kSame,
       "did not start: " + another + " had to succeed, but failed", kSame,
       "did not start: " + another + " had to succeed, but failed"},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto& some :
       {eviction_rows(), waiting_rows(), life_rows(), slurm_rows(), dependency_rows()}) {
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return rows;
}

// Add a row above for each new fact, then increase this number.
static_assert(std::variant_size_v<Fact> == 41);
static_assert(std::variant_size_v<job::FailureCause> == 9);
static_assert(std::variant_size_v<job::Eviction> == 10);

TEST(Facts, EachHaveARow) {
  std::set<size_t> facts;
  std::set<size_t> evictions;
  std::set<size_t> causes;
  for (const Row& row : all_rows()) {
    facts.insert(row.fact.index());
    if (const auto* evicted = std::get_if<Evicted>(&row.fact)) {
      evictions.insert(evicted->why.index());
    }
    if (const auto* failed = std::get_if<job::Failed>(&row.fact)) {
      causes.insert(failed->cause.index());
    }
  }
  EXPECT_EQ(facts.size(), std::variant_size_v<Fact>);
  EXPECT_EQ(evictions.size(), std::variant_size_v<job::Eviction>);
  EXPECT_EQ(causes.size(), std::variant_size_v<job::FailureCause>);
}

TEST(Facts, HideFromEachReaderTheNamesThatItMayNotSee) {
  for (const Row& row : all_rows()) {
    EXPECT_EQ(sentence(row.fact), row.admin);
    for (const auto& [reader, expected] : {std::pair<std::string, std::string>{"mine", row.mine},
                                           {"theirs", row.theirs},
                                           {"org", row.org},
                                           {"nobody's", row.stranger}}) {
      EXPECT_EQ(sentence(seen_by(sight_of(reader), row.fact)),
                expected == kSame ? row.admin : expected)
          << reader;
    }
  }
}

// Hidden names are not in the data either, because the API sends all of it.
TEST(Facts, ContainNoHiddenNames) {
  for (const Row& row : all_rows()) {
    if (std::holds_alternative<job::Remark>(row.fact)) continue;
    const std::string mine = job::data_of(seen_by(sight_of("mine"), row.fact));
    for (const char* const name : {"spy", "theirs", "\"org\""}) {
      EXPECT_EQ(mine.find(name), std::string::npos) << mine;
    }
  }
}

std::optional<Fact> fact_in(std::string_view json) {
  return job::fact_of(record::ValueTree::of_text(json).value().root());
}

TEST(Facts, AreReadBackFromJson) {
  for (const Row& row : all_rows()) {
    const std::string json = job::data_of(row.fact);
    EXPECT_EQ(fact_in(json), row.fact) << json;
    const Fact seen = seen_by(sight_of("mine"), row.fact);
    EXPECT_EQ(fact_in(job::data_of(seen)), seen) << json;
  }
}

TEST(Facts, AnEndOfAnAllocationThatWasStoredWithoutAKindIsSlurms) {
  const auto fact = fact_in(
      R"({"kind": "asks_for_room", "cluster": "Slurm", "after": {"cause": "late", "slurm_job": 6}})");

  ASSERT_TRUE(fact);
  EXPECT_EQ(*fact, Fact(job::RequestsAllocation{
                       .cluster = "Slurm",
                       .after = SlurmEnded{.cause = SlurmEnded::Cause::kLate, .slurm_job = 6}}));
}

TEST(Facts, OfAnUnknownKindOrAWrongTypeAreNotRead) {
  for (const char* const text :
       {R"({})", R"([])", R"("x")", R"({"kind": "tea"})", R"({"kind": 7})",
        R"({"kind": "reserved", "held_for": 7})", R"({"kind": "promised", "tasks": "x"})",
        R"({"kind": "notice", "what": "tea"})", R"({"kind": "evicted", "why": {}})",
        R"({"kind": "slurm_state", "since": "yesterday"})",
        R"({"kind": "placed", "nodes": {"n1": 1}})"}) {
    EXPECT_FALSE(fact_in(text)) << text;
  }
  EXPECT_TRUE(fact_in(R"({"kind": "remark", "colour": "blue"})"));
}

TEST(Sentence, NamesTheCommandsOfTheReadersProgram) {
  const job::Reason held = job::Suspended{.job = "dist", .held = true};
  const job::Reason suspended = job::Suspended{.job = "dist"};

  EXPECT_EQ(sentence(suspended), "is suspended; muster resume dist continues it");
  EXPECT_EQ(after_colon(suspended, {.resume = "runai resume "}),
            ": is suspended; runai resume dist continues it");
  EXPECT_EQ(sentence(held, {.resume = "gradient experiments start --id "}),
            "is held; gradient experiments start --id dist starts it");
}

}  // namespace
}  // namespace muster::words
