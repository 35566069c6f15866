#include "engine/node/pod.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine::node {
namespace {

namespace fs = std::filesystem;

TEST(ReadPod, NeedsItsNode) {
  const auto pod = read_pod({});
  ASSERT_FALSE(pod);
  EXPECT_NE(pod.error().what.find(kPodNode), std::string::npos);
}

TEST(ReadPod, NumbersMustBeNumbers) {
  const auto pod = read_pod({{kPodNode, "n1"}, {kPodPort, "99999"}});
  ASSERT_FALSE(pod);
  EXPECT_NE(pod.error().what.find("'99999'"), std::string::npos) << pod.error().what;
}

TEST(TakeBriefVariable, ErasesTheKeyFromTheEnvironment) {
  EXPECT_EQ(take_brief_variable(), std::nullopt);
  const std::string text = "a key";
  ASSERT_EQ(::setenv(kPodBriefText, text.c_str(), 1), 0);
  const char* const place = std::getenv(kPodBriefText);
  EXPECT_EQ(take_brief_variable(), text);
  EXPECT_EQ(std::getenv(kPodBriefText), nullptr);
  EXPECT_EQ(std::string(place, text.size()), std::string(text.size(), '\0'));
}

TEST(ReadPod, LooksIntoTheImage) {
  const base::TestFolder root;
  for (const char* const folder : {"bin", "etc", "usr/sbin", "usr/bin"}) {
    fs::create_directories(root / folder);
  }
  const std::string uid = std::to_string(::geteuid());
  ASSERT_TRUE(base::write_file(root / "etc" / "passwd",
                               "trainer:x:" + uid + ":5:a name:/home/trainer:/bin/nologin\n"));
  for (const char* const program : {"bin/sh", "usr/sbin/sshd", "usr/bin/ssh"}) {
    ASSERT_TRUE(base::write_file(root / program, "", 0755));
  }

  const auto pod = read_pod({{kPodNode, "n1"}, {kPodGrace, "45"}, {"LANG", "C"}}, root);

  ASSERT_TRUE(pod) << pod.error().to_string();
  EXPECT_EQ(pod->image.account.name, "trainer");
  EXPECT_EQ(pod->image.account.home, "/home/trainer");
  EXPECT_EQ(pod->image.account.gid, ::getegid());
  EXPECT_EQ(pod->image.sshd, "/usr/sbin/sshd");
  EXPECT_TRUE(pod->image.has_ssh);
  EXPECT_TRUE(pod->image.has_shell);
  EXPECT_EQ(pod->image.environment, (std::map<std::string, std::string>{{"LANG", "C"}}));
  EXPECT_EQ(pod->grace, std::chrono::seconds(45));
}

struct VisibleGpus {
  const char* variable;
  std::vector<std::string> names;
};

TEST(ReadPod, GpusAreThoseOfItsContainer) {
  const std::vector<VisibleGpus> table{{"", {}},
                                       {"void", {}},
                                       {"all", {}},
                                       {"GPU-1,GPU-2", {"GPU-1", "GPU-2"}},
                                       {"MIG-7", {"MIG-7"}},
                                       {"6,4", {"0", "1"}}};
  for (const auto& [variable, names] : table) {
    const auto pod = read_pod({{kPodNode, "n1"}, {"NVIDIA_VISIBLE_DEVICES", variable}});
    ASSERT_TRUE(pod);
    EXPECT_EQ(pod->facts.gpus, names) << variable;
    EXPECT_EQ(pod->facts.gpu_indices.size(), names.size());
  }
}

TEST(Install, CopiesProgramsAndTheBrief) {
  const base::TestFolder folder;
  fs::create_directories(folder / "image");
  for (const char* const name : {"muster-node", "muster-shim", "muster-helper", "muster-rsh"}) {
    ASSERT_TRUE(base::write_file(folder / "image" / name, name, 0700));
  }
  ASSERT_TRUE(base::write_file(folder / "secret", "the brief"));
  fs::create_directories(folder / "muster");

  const auto installed = install(folder / "image", folder / "muster", folder / "secret");

  ASSERT_TRUE(installed) << installed.error().to_string();
  EXPECT_EQ(*base::read_file(folder / "muster" / "bin" / "muster-rsh"), "muster-rsh");
  EXPECT_EQ(fs::status(folder / "muster" / "bin" / "muster-node").permissions(),
            static_cast<fs::perms>(0755));
  EXPECT_EQ(*base::read_file(folder / "muster" / "brief"), "the brief");
  EXPECT_EQ(fs::status(folder / "muster" / "brief").permissions(), static_cast<fs::perms>(0444));
}

TEST(Install, NamesAProgramThatIsMissing) {
  const base::TestFolder folder;
  const auto installed = install(folder / "image", folder / "muster", "");
  ASSERT_FALSE(installed);
  EXPECT_NE(installed.error().what.find("muster-node"), std::string::npos);
}

/// Runs the function in a child process, since it changes signals and reaps children.
int held(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(hold_as_process_one(body));
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessOne, HasTheCodeOfItsProgram) {
  EXPECT_EQ(held([] { return 7; }), 7);
  EXPECT_EQ(held([] { return ::raise(SIGKILL); }), 128 + SIGKILL);
}

TEST(ProcessOne, ReapsOrphansAndPassesSignalsOn) {
  EXPECT_EQ(held([] {
              sigset_t term;
              sigemptyset(&term);
              sigaddset(&term, SIGTERM);
              ::sigprocmask(SIG_BLOCK, &term, nullptr);
              const pid_t middle = ::fork();
              if (middle == 0) {
                if (::fork() == 0) ::_exit(3);  // an orphan
                ::_exit(0);
              }
              ::waitpid(middle, nullptr, 0);
              ::kill(::getppid(), SIGTERM);
              int signal = 0;
              ::sigwait(&term, &signal);
              return signal == SIGTERM ? 9 : 1;
            }),
            9);
}

}  // namespace
}  // namespace muster::engine::node
