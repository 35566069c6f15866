// The volumes that tasks see, and the folders that engines create, hide and remove for them.
#include <stdlib.h>

#include <future>

#include "engine/conformance.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

using job::Volume;

const std::string kTree(64, 'a');

Volume host_path(const fs::path& source, const std::string& target, bool read_only = false) {
  return {.kind = Volume::Kind::kHostPath,
          .source = source.string(),
          .target = target,
          .read_only = read_only};
}

Volume tree(const std::string& target, const std::string& id = kTree) {
  return {.kind = Volume::Kind::kTree, .source = id, .target = target};
}

Volume storage(const std::string& target) {
  return {.kind = Volume::Kind::kStorage, .source = "storage", .target = target};
}

class Volumes : public Conformance {
 protected:
  Volumes() {
    fs::create_directories(data());
    // Tasks may have ids of their own.
    fs::permissions(data(), fs::perms::all);
  }

  fs::path data() const { return folder_ / "data"; }

  /// A file name that does not exist in that folder on any machine.
  std::string new_name() const { return "muster-" + marker_; }

  TaskPlan with(TaskPlan plan, const std::vector<Volume>& volumes) const {
    plan.project = "team-a";
    plan.volumes.insert(plan.volumes.begin(), volumes.begin(), volumes.end());
    return plan;
  }

  /// The output of the script with these volumes.
  std::string output_of(const std::string& text, const std::vector<Volume>& volumes) {
    run(with(script(text), volumes));
    return log_of("main");
  }

  Result<void> start_with(const std::vector<Volume>& volumes) {
    return bench_->start(gang_, {with(script("true"), volumes)});
  }

  /// Makes the next tree wait in the middle of its unpacking until the test releases it.
  struct Gate {
    std::promise<void> reached;
    std::promise<void> opened;
  };
  void unpack_through(Gate& gate) {
    bench_->unpack = [&gate, plain = bench_->unpack](const std::string& project,
                                                     const std::string& id, const fs::path& into) {
      EXPECT_TRUE(base::write_new_file(into / "half", ""));
      gate.reached.set_value();
      gate.opened.get_future().wait();
      return plain(project, id, into);
    };
  }

  bool nothing_is_left_of_drafts() const {
    std::error_code error;
    const fs::path drafts = folder_ / "jobs" / ".unpacking";
    return !fs::exists(drafts, error) || fs::is_empty(drafts, error);
  }
};

/// Tests of shown and hidden folders, for engines whose tasks see the machine's files.
class SandboxedVolumes : public Volumes {};

// --- paths of the node

TEST_P(Volumes, AFolderOfTheNodeIsSeenAndWrittenToAtItsPlace) {
  ASSERT_TRUE(base::write_new_file(data() / "in", "from the node\n", 0644));
  const std::string place = "/" + new_name();

  EXPECT_EQ(
      output_of("cat " + place + "/in; echo back > " + place + "/out", {host_path(data(), place)}),
      "from the node\n");
  EXPECT_EQ(*base::read_file(data() / "out"), "back\n");
  EXPECT_FALSE(fs::exists(place));
}

TEST_P(Volumes, AReadOnlyVolumeCannotBeWritten) {
  const std::string place = "/" + new_name();

  EXPECT_NE(
      output_of("touch " + place + "/x 2>&1 && echo written", {host_path(data(), place, true)})
          .find("Read-only file system"),
      std::string::npos);
  EXPECT_TRUE(fs::is_empty(data()));
}

TEST_P(SandboxedVolumes, AMountPointBelowAFolderOfTheMachineIsNotCreatedInThatFolder) {
  fs::create_directories(folder_ / "machine/kept");
  ASSERT_TRUE(base::write_new_file(data() / "in", "seen\n", 0644));
  const std::string machine = (folder_ / "machine").string();

  EXPECT_EQ(
      output_of("cat " + machine + "/a/b/in; ls " + machine, {host_path(data(), machine + "/a/b")}),
      "seen\na\nkept\n");
  EXPECT_FALSE(fs::exists(folder_ / "machine/a"));
}

TEST_P(SandboxedVolumes, AFolderWithManyEntriesKeepsThemAllAndTheirLinksFindTheirWay) {
  const fs::path crowd = folder_ / "crowd";
  fs::create_directories(crowd / "00");
  ASSERT_TRUE(base::write_new_file(data() / "in", "outside\n", 0644));
  for (int i = 10; i < 50; ++i) {
    const fs::path entry = crowd / std::to_string(i);
    fs::create_directories(entry);
    fs::create_symlink("../../data/in", entry / "out");
    fs::create_symlink("../00", entry / "beside");
  }

  EXPECT_EQ(output_of("cd " + crowd.string() +
                          "; ls | wc -l; cat 10/out 49/out | sort -u; ls -d 30/beside; echo x > "
                          "20/made; cat new/in",
                      {host_path(data(), (crowd / "new").string())}),
            "42\noutside\n30/beside\noutside\n");
  EXPECT_TRUE(fs::exists(crowd / "20/made"));
  EXPECT_FALSE(fs::exists(crowd / "new"));
}

TEST_P(Volumes, AMissingVolumeFailsTheStartAndIsNamed) {
  const auto started = start_with({host_path("/no/such/folder", "/x")});

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().what,
            "cannot start main: volume /x: there is no '/no/such/folder' on this node");
  EXPECT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kNothing);
}

// --- hidden folders stay hidden

class HiddenFiles : public Volumes {};

TEST_P(HiddenFiles, CannotBeAVolumeByAnyName) {
  ASSERT_TRUE(base::write_new_file(folder_ / "key", "sesame"));
  ASSERT_TRUE(base::make_private_folder(folder_ / "jobs" / "other"));
  fs::create_directory_symlink(folder_ / "jobs", folder_ / "link");
  for (const fs::path& source :
       {folder_ / "key", folder_ / "jobs", folder_ / "jobs/other", folder_ / "link/other",
        folder_ / "storage", fs::path("/proc"), fs::path("/proc/self/root/proc/1")}) {
    const auto started = start_with({host_path(source, "/x")});
    EXPECT_FALSE(started) << source;
  }
}

TEST_P(SandboxedVolumes, AFolderThatContainsSomethingHiddenIsShownWithoutIt) {
  ASSERT_TRUE(base::write_new_file(folder_ / "key", "sesame"));
  ASSERT_TRUE(base::make_private_folder(folder_ / "jobs" / "other"));
  ASSERT_TRUE(base::write_new_file(folder_ / "jobs/other/secret", "sesame"));

  EXPECT_EQ(output_of("cat /x/key; ls -A /x/jobs; ls -d /x/data", {host_path(folder_, "/x")}),
            "/x/data\n");
}

TEST_P(SandboxedVolumes, TheWholeMachineIsShownWithoutHiddenFoldersAndProcesses) {
  ASSERT_TRUE(base::make_private_folder(folder_ / "jobs" / "other"));

  EXPECT_EQ(output_of("ls -A /x/proc; ls -A /x" + (folder_ / "jobs").string() + "; ls -d /x/usr",
                      {host_path("/", "/x")}),
            "/x/usr\n");
}

TEST_P(SandboxedVolumes, AFolderThatIsCreatedAgainHidesTheSameFilesAsBefore) {
  ASSERT_TRUE(base::write_new_file(folder_ / "key", "sesame"));
  ASSERT_TRUE(base::make_private_folder(folder_ / "jobs" / "other"));
  for (int i = 10; i < 50; ++i) fs::create_directories(folder_ / std::to_string(i));
  const std::string here = folder_.string();

  // The real folder of the machine must not contain it either, wherever the links lead.
  EXPECT_EQ(output_of("for f in " + here + "/key /.machine" + here +
                          "/key; do cat $f; done; "
                          "ls -A " +
                          here + "/jobs /.machine" + here + "/jobs; ls -d " + here + "/10",
                      {host_path(data(), here + "/new")}),
            "/.machine" + here + "/jobs:\n\n" + here + "/jobs:\n" + here + "/10\n");
}

// --- trees, storage, artifacts

class SharedVolumes : public Volumes {};

TEST_P(SharedVolumes, TheTasksOfAGangShareOneCopyOfATree) {
  const std::string home = "/home/" + new_name();
  TaskPlan writer =
      with(script("cat " + home + "/files; echo x > " + home + "/made", "writer"), {tree(home)});
  TaskPlan reader =
      with(script("until [ -s " + home + "/made ]; do sleep 0.01; done; cat " + home + "/made",
                  "reader"),
           {tree(home)});
  writer.folder = reader.folder = home;

  ASSERT_TRUE(bench_->start(gang_, {writer, reader}));
  bench_->wait_for_end("writer");
  bench_->wait_for_end("reader");

  EXPECT_EQ(log_of("writer"), "team-a " + kTree + "\n");
  EXPECT_EQ(log_of("reader"), "x\n");
  EXPECT_FALSE(fs::exists(home));
  EXPECT_TRUE(nothing_is_left_of_drafts());
}

TEST_P(Volumes, ATreeOfNothingIsAnEmptyFolder) {
  EXPECT_EQ(output_of("ls -A /x; touch /x/made && ls /x", {tree("/x", "")}), "made\n");
}

class KeptTrees : public Volumes {};

// In pods each task has a tree of its own, so the Kubernetes program has no engine for these.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KeptTrees);

TEST_P(KeptTrees, TheNextAttemptFindsTheTreeAsTheOneBeforeLeftIt) {
  run(with(script("echo kept > /x/made"), {tree("/x")}));
  bench_->engine().scrub(gang_);
  bench_->unpack = [](const auto&...) { return Result<void>(base::Error{.what = "again"}); };

  const GangId second{kJob, 2};
  std::optional<Result<void>> started;
  bench_->begin_start(second, {with(script("cp /x/made $SCRATCH/seen"), {tree("/x")})}, started);
  bench_->wait_until([&] { return started.has_value(); });

  ASSERT_TRUE(started);
  ASSERT_TRUE(*started) << started->error().to_string();
  bench_->wait_until([&] { return bench_->reports_of("main") >= 4; });  // two of each attempt
  EXPECT_EQ(*base::read_file(scratch_ / "seen"), "kept\n");
}

class StorageVolumes : public Volumes {};

TEST_P(StorageVolumes, AProjectsStorageOutlivesTheJobAndAnotherProjectHasItsOwn) {
  run(with(script("echo kept > /storage/x"), {storage("/storage")}));
  ASSERT_TRUE(bench_->engine().remove(kJob));

  run(with(script("cat /storage/x", "next"), {storage("/storage")}));
  EXPECT_EQ(log_of("next"), "kept\n");
  if (!GetParam().is_container) {
    // With separate accounts, the folder is accessible to the group of the server's users.
    EXPECT_EQ(fs::status(folder_ / "storage/team-a/storage").permissions() & fs::perms::others_all,
              fs::perms::none);
  }
  TaskPlan other = with(script("ls -A /storage", "other"), {storage("/storage")});
  other.project = "team-b";
  run(other);
  EXPECT_EQ(log_of("other"), "");
}

TEST_P(Volumes, AStorageWhoseNameLeadsElsewhereIsRefused) {
  for (const char* name : {"", "..", "../team-b", "a/b"}) {
    Volume volume = storage("/storage");
    volume.source = name;
    EXPECT_FALSE(start_with({volume})) << name;
  }
}

TEST_P(Volumes, AVolumeMayBeMountedWithinAnother) {
  EXPECT_EQ(output_of("cat /x/deep/inner/files; echo x > /x/made; echo y > /x/deep/inner/made",
                      {{.kind = Volume::Kind::kArtifacts, .target = "/x"}, tree("/x/deep/inner")}),
            "team-a " + kTree + "\n");
  EXPECT_EQ(*base::read_file(folder_ / "jobs" / kJob / "artifacts/made"), "x\n");
  if (GetParam().keeps_volumes) {
    EXPECT_EQ(*base::read_file(folder_ / "jobs" / kJob / "trees/1/made"), "y\n");
  }
}

TEST_P(Volumes, ScrubbingKeepsThemAndRemovingTheJobDoesNot) {
  const Volume artifacts{.kind = Volume::Kind::kArtifacts, .target = "/artifacts"};
  run(with(script("mkdir -m 0 /x/closed; echo x > /artifacts/made"), {tree("/x"), artifacts}));
  const fs::path job = folder_ / "jobs" / kJob;

  bench_->engine().scrub(gang_);
  EXPECT_TRUE(fs::exists(job / "trees/0/files"));
  EXPECT_TRUE(fs::exists(job / "artifacts/made"));

  ASSERT_TRUE(bench_->engine().remove(kJob));
  EXPECT_FALSE(fs::exists(job));
  ASSERT_TRUE(bench_->engine().remove(kJob));
  bench_->wait_until([&] { return fs::is_empty(folder_ / "jobs/.removed"); });
  EXPECT_TRUE(fs::is_empty(folder_ / "jobs/.removed"));
}

// --- while trees are unpacked

TEST_P(Volumes, ATreeThatCannotBeUnpackedFailsTheStartAndLeavesNothing) {
  bench_->unpack = [](const std::string&, const std::string&, const fs::path& into) {
    EXPECT_TRUE(base::write_new_file(into / "half", ""));
    return Result<void>(
        base::Error{.code = base::ErrorCode::kExhausted, .what = "the disk is full"});
  };

  const auto started = start_with({tree("/x")});

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, base::ErrorCode::kExhausted);
  EXPECT_EQ(started.error().what,
            "cannot start main: the files for /x cannot be unpacked: the disk is full");
  EXPECT_TRUE(nothing_is_left_of_drafts());
  EXPECT_FALSE(fs::exists(folder_ / "jobs" / kJob / "trees/0"));
  EXPECT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kNothing);
}

TEST_P(Volumes, ATreeThatAServerUnpackedPartlyIsNotUsed) {
  // An engine removes such folders when it starts, so the folder is made while no engine exists.
  bench_.reset();
  const fs::path draft = folder_ / "jobs/.unpacking" / (std::string(kJob) + "-0");
  fs::create_directories(draft);
  ASSERT_TRUE(base::write_new_file(draft / "half", ""));
  open_bench();

  EXPECT_EQ(output_of("ls /x", {tree("/x")}), "files\n");
  EXPECT_TRUE(nothing_is_left_of_drafts());
}

TEST_P(Volumes, AStopWhileFilesAreUnpackedStartsNoTaskAtAll) {
  Gate gate;
  unpack_through(gate);
  std::optional<Result<void>> started;
  bench_->begin_start(
      gang_, {with(script("true", "one"), {tree("/x")}), with(script("true", "two"), {tree("/x")})},
      started);
  gate.reached.get_future().wait();

  bench_->engine().stop(gang_, {"two"}, StopMode::kGraceful);
  bench_->wait_until([&] { return started.has_value(); });
  gate.opened.set_value();

  ASSERT_TRUE(started);
  EXPECT_FALSE(*started);
  bench_->wait_until([&] { return fs::exists(folder_ / "jobs" / kJob / "trees/0"); });
  bench_->loop().post([this] { bench_->loop().stop(); });
  bench_->loop().run();
  for (const char* task : {"one", "two"}) {
    EXPECT_EQ(bench_->engine().adopt(gang_, task), AdoptionResult::kNothing);
    EXPECT_EQ(bench_->reports_of(task), 0);
  }
}

TEST_P(Volumes, AJobThatIsRemovedWhileItsFilesAreUnpackedLeavesNothing) {
  Gate gate;
  unpack_through(gate);
  std::optional<Result<void>> started;
  bench_->begin_start(gang_, {with(script("true"), {tree("/x")})}, started);
  gate.reached.get_future().wait();

  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);
  bench_->wait_until([&] { return started.has_value(); });
  ASSERT_TRUE(bench_->engine().remove(kJob));
  gate.opened.set_value();

  bench_->wait_until([&] { return nothing_is_left_of_drafts(); });
  EXPECT_TRUE(nothing_is_left_of_drafts());
  EXPECT_FALSE(fs::exists(folder_ / "jobs" / kJob));
}

TEST_P(Volumes, ANewEngineTakesUpATaskWithATree) {
  ASSERT_TRUE(bench_->start(
      gang_, {with(script("echo up; until [ -e $SCRATCH/go ]; do sleep 0.01; done; cat /x/files"),
                   {tree("/x")})}));
  wait_for_output("main");
  open_bench();

  ASSERT_EQ(bench_->engine().adopt(gang_, "main"), AdoptionResult::kRunning);
  ASSERT_TRUE(base::write_file(scratch_ / "go", ""));

  EXPECT_EQ(bench_->wait_for_end("main").status.code, 0);
  EXPECT_EQ(log_of("main"), "up\nteam-a " + kTree + "\n");
}

// --- other readers of volumes

TEST_P(Volumes, AProgramBesideTheTaskSeesTheSameVolumes) {
  ASSERT_TRUE(bench_->start(gang_, {with(script("echo up; exec sleep " + marker_), {tree("/x")})}));
  wait_for_output("main");
  std::string output;
  std::optional<job::ExitStatus> status;

  const auto exec =
      bench_->engine().exec(gang_, "main", {.argv = {"cat", "/x/files"}},
                            {.on_output = [&](std::string_view bytes, bool) { output += bytes; },
                             .on_exit = [&](const job::ExitStatus& end) { status = end; }});
  ASSERT_TRUE(exec);
  bench_->wait_until([&] { return status.has_value(); });

  EXPECT_EQ(output, "team-a " + kTree + "\n");
  bench_->engine().stop(gang_, {"main"}, StopMode::kNow);
  bench_->wait_for_end("main");
}

TEST_P(SandboxedVolumes, AFileOfGeneratedIsFoundAtItsOtherPlaceBesideEverythingElseThere) {
  TaskPlan plan = script("cat /etc/mpi-" + marker_ +
                         "/hostfile; for f in /etc/*; do [ -e $f ] && echo $f; done > "
                         "$SCRATCH/seen; getent hosts test-main > /dev/null && echo resolves");
  plan.address = "127.99.0.1";
  plan.hosts = {{"test-main", "127.99.0.1"}};
  plan.files = {{.path = "hostfile", .content = "dist-worker-0 slots=1\n"}};
  plan.also_at = {{"hostfile", "/etc/mpi-" + marker_ + "/hostfile"}};
  std::string expected;
  std::vector<fs::path> entries{"/etc/mpi-" + marker_};
  for (const auto& entry : fs::directory_iterator("/etc")) {
    if (fs::exists(entry.path()) && !entry.path().filename().string().starts_with('.')) {
      entries.push_back(entry.path());
    }
  }
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) expected += entry.string() + "\n";

  run(plan);

  EXPECT_EQ(log_of("main"), "dist-worker-0 slots=1\nresolves\n");
  const auto lines = [](const std::string& text) {
    const auto all = base::split(text, '\n');
    return std::set<std::string>(all.begin(), all.end());
  };
  EXPECT_EQ(lines(*base::read_file(scratch_ / "seen")), lines(expected));
  EXPECT_FALSE(fs::exists(entries.front().parent_path() / ("mpi-" + marker_)));
}

TEST_P(Volumes, AVolumeOfTheUsersWinsOverAFileOfGenerated) {
  ASSERT_TRUE(base::write_new_file(data() / "hostfile", "mine\n", 0644));
  TaskPlan plan = with(script("cat /etc/mpi/hostfile"), {host_path(data(), "/etc/mpi")});
  plan.files = {{.path = "hostfile", .content = "theirs\n"}};
  plan.also_at = {{"hostfile", "/etc/mpi/hostfile"}};

  run(plan);

  EXPECT_EQ(log_of("main"), "mine\n");
}

/// Engines that have volumes.
std::vector<Ground> volume_grounds_where(bool Ground::* trait) {
  std::vector<Ground> all = grounds_where(&Ground::is_set_apart);
  std::erase_if(all, [&](const Ground& ground) { return !(ground.*trait); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Engines, StorageVolumes,
                         testing::ValuesIn(volume_grounds_where(&Ground::has_storage)),
                         ground_name);
INSTANTIATE_TEST_SUITE_P(Engines, KeptTrees,
                         testing::ValuesIn(volume_grounds_where(&Ground::keeps_trees)),
                         ground_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SharedVolumes);
INSTANTIATE_TEST_SUITE_P(Engines, SharedVolumes,
                         testing::ValuesIn(volume_grounds_where(&Ground::shares_volumes)),
                         ground_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HiddenFiles);
INSTANTIATE_TEST_SUITE_P(Engines, HiddenFiles,
                         testing::ValuesIn(volume_grounds_where(&Ground::hides_files)),
                         ground_name);
INSTANTIATE_TEST_SUITE_P(Engines, Volumes, testing::ValuesIn(grounds_where(&Ground::is_set_apart)),
                         ground_name);

// Not every executable has such a ground.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SandboxedVolumes);
INSTANTIATE_TEST_SUITE_P(Engines, SandboxedVolumes,
                         testing::ValuesIn(grounds_where(&Ground::shows_tmp)), ground_name);

class Unsandboxed : public Volumes {};

TEST_P(Unsandboxed, VolumesAreRefusedWithASentence) {
  const auto started = start_with({host_path(data(), "/x")});

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().what, "cannot start main: volume /x: volumes require a sandbox");
}

// Not every executable has such a ground.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Unsandboxed);
INSTANTIATE_TEST_SUITE_P(Engines, Unsandboxed,
                         testing::ValuesIn(grounds_where(&Ground::is_set_apart, false)),
                         ground_name);

}  // namespace
}  // namespace muster::engine
