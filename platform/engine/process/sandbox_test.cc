#include "engine/process/sandbox.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"
#include "engine/shim/network.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// Changes the machine's folders between the making of a sandbox's command and its run, as a task
/// of another project could.
class SharedSandbox : public testing::Test {
 protected:
  SharedSandbox() {
    for (const char* name : {"above/hidden/task/generated", "data"}) {
      fs::create_directories(folder_ / name);
    }
    EXPECT_TRUE(base::write_new_file(hidden() / "key", "sesame\n"));
    EXPECT_TRUE(base::write_new_file(folder_ / "data/file", "data\n"));
    EXPECT_TRUE(base::write_new_file(task() / "hosts", "127.0.0.1 localhost\n"));
  }

  fs::path hidden() const { return folder_ / "above/hidden"; }
  fs::path task() const { return hidden() / "task"; }

  std::vector<std::string> command(const std::vector<Mount>& mounts) const {
    launch::TaskPlan plan;
    plan.hostname = "test";
    auto words = sandbox_command(plan, {task()}, mounts, real_paths({hidden()}), true);
    EXPECT_TRUE(words) << words.error().to_string();
    return *std::move(words);
  }

  /// The output of a script in the sandbox. The script can write only to the task's own folder.
  std::string output_of(const std::string& script, std::vector<std::string> words) const {
    words.insert(words.end(), {"sh", "-c", "(" + script + ") > /generated/out 2>&1"});
    const auto child = base::spawn({.argv = words, .environment = base::current_environment()});
    EXPECT_TRUE(child);
    if (!child || !base::wait_for(*child)) return "(not run)";
    const auto output = base::read_file(task() / "generated/out");
    return output ? *output : output.error().to_string();
  }

  const base::TestFolder folder_;
};

TEST_F(SharedSandbox, AFolderReplacedByALinkShowsNothingHidden) {
  const fs::path source = folder_ / "data";
  const auto words = command({{.source = source, .target = "/x", .own = false}});
  EXPECT_EQ(output_of("cat /x/file", words), "data\n");

  fs::rename(source, folder_ / "away");
  fs::create_directory_symlink(hidden(), source);

  // Of the hidden folder, only the task's own folder remains.
  EXPECT_EQ(output_of("cat /x/key 2> /dev/null; ls -A /x", words), "task\n");
}

TEST_F(SharedSandbox, AFolderBesideTheTasksFolderIsMounted) {
  fs::create_directories(hidden() / "own");
  ASSERT_TRUE(base::write_new_file(hidden() / "own/file", "own\n"));

  EXPECT_EQ(output_of("cat /x/file /y/file; ls -A " + hidden().string(),
                      command({{.source = folder_ / "data", .target = "/x", .own = false},
                               {.source = hidden() / "own", .target = "/y", .own = true}})),
            "data\nown\n");
}

TEST_F(SharedSandbox, HidesTheKernelsSymbolsOnOneMachine) {
  const auto symbols = [&](launch::Reach reach) {
    launch::TaskPlan plan;
    plan.hostname = "test";
    plan.reach = reach;
    const auto words = sandbox_command(plan, {task()}, {}, real_paths({hidden()}), true);
    EXPECT_TRUE(words) << words.error().to_string();
    return output_of("grep -c . /proc/kallsyms", *words);
  };
  EXPECT_GT(std::stoi(symbols(launch::Reach::kHosts)), 1000);
  EXPECT_EQ(symbols(launch::Reach::kLoopback).find("grep: /proc/kallsyms"), 0U);
}

TEST_F(SharedSandbox, NoFolderAboveAHiddenPathCanBeRenamed) {
  const std::string above = (folder_ / "above").string();

  for (const auto& words :
       {command({}), command({{.source = folder_ / "data", .target = "/x", .own = false}})}) {
    output_of("mv " + above + " " + above + "-moved", words);
    EXPECT_TRUE(fs::exists(hidden() / "key"));
  }
  // The task cannot reach it by another path either.
  output_of("mv /x/above /x/moved",
            command({{.source = fs::path(folder_), .target = "/x", .own = false}}));
  EXPECT_TRUE(fs::exists(hidden() / "key"));
}

TEST(SandboxAdvice, NamesOnlyTheSettingsThatForbidNamespaces) {
  const base::TestFolder root;
  EXPECT_EQ(needed_namespace_settings(root), std::vector<std::string>{});
  const auto set = [&](const char* name, const char* value) {
    const fs::path file = root / "proc/sys" / name;
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(base::write_file(file, value));
  };
  set("user/max_user_namespaces", "0\n");
  EXPECT_EQ(needed_namespace_settings(root),
            std::vector<std::string>{"user.max_user_namespaces=15000"});
  set("user/max_user_namespaces", "127000\n");
  set("kernel/unprivileged_userns_clone", "1\n");
  set("kernel/apparmor_restrict_unprivileged_userns", "0\n");
  EXPECT_EQ(needed_namespace_settings(root), std::vector<std::string>{});
  set("kernel/unprivileged_userns_clone", "0\n");
  set("kernel/apparmor_restrict_unprivileged_userns", "1\n");
  EXPECT_EQ(needed_namespace_settings(root),
            (std::vector<std::string>{"kernel.unprivileged_userns_clone=1",
                                      "kernel.apparmor_restrict_unprivileged_userns=0"}));
}

TEST(SandboxAdvice, NamesOnlyWhatIsMissing) {
  EXPECT_EQ(
      sandbox_advice(false, {}),
      "install bubblewrap (apt install bubblewrap), or run without a sandbox: --sandbox none");
  EXPECT_EQ(sandbox_advice(false, {"a=1"}),
            "install bubblewrap (apt install bubblewrap) and allow user namespaces (sysctl a=1), "
            "or run without a sandbox: --sandbox none");
  EXPECT_EQ(sandbox_advice(true, {"a=1", "b=0"}),
            "allow user namespaces (sysctl a=1 b=0), or run without a sandbox: --sandbox none");
  EXPECT_EQ(sandbox_advice(true, {}),
            "allow user namespaces (in a container: CAP_SYS_ADMIN), or run without a sandbox: "
            "--sandbox none");
}

}  // namespace

}  // namespace muster::engine
