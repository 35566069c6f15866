#include "muster_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

namespace muster {
namespace {

namespace fs = std::filesystem;

const char* const kRanks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK",
                              "MUSTER_RANK"};

/// A socket in the place of Muster's, and an environment without a rank.
class Reports : public testing::Test {
 protected:
  Reports() {
    std::string pattern = (fs::temp_directory_path() / "reports-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    for (const char* name : kRanks) ::unsetenv(name);
    bind_in(folder_);
  }
  ~Reports() override {
    ::close(socket_);
    fs::remove_all(folder_);
    for (const char* name : kRanks) ::unsetenv(name);
    ::unsetenv("MUSTER_METRICS");
  }

  void bind_in(const fs::path& folder) {
    if (socket_ >= 0) ::close(socket_);
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int descriptor = ::open(folder.c_str(), O_PATH | O_CLOEXEC);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/metrics",
                  descriptor);
    ASSERT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(descriptor);
    ::setenv("MUSTER_METRICS", (folder / "metrics").c_str(), 1);
  }

  /// The next report; empty if there is none.
  std::string received() const {
    char text[1024];
    const ssize_t count = ::recv(socket_, text, sizeof text, 0);
    return count < 0 ? "" : std::string(text, static_cast<std::size_t>(count));
  }

  fs::path folder_;
  int socket_ = -1;
};

TEST_F(Reports, AreOneDatagramEach) {
  report({{"epoch", 3}, {"loss", 0.183}, {"images_per_second", 5.4e6}});
  report({{"gap", std::numeric_limits<double>::infinity()}});

  EXPECT_EQ(received(), " epoch=3 loss=0.183 images_per_second=5400000");
  EXPECT_EQ(received(), " gap=inf");
  EXPECT_EQ(received(), "");
}

TEST_F(Reports, ContainTheRankThatTheLauncherSet) {
  for (const char* name : kRanks) {
    ::setenv(name, "7", 1);
    report({{"loss", 1}});
    ::unsetenv(name);

    EXPECT_EQ(received(), "rank=7 loss=1") << name;
  }
}

TEST_F(Reports, ReachASocketWhosePathExceedsAnAddress) {
  fs::path deep = folder_;
  for (int i = 0; i < 10; ++i) deep /= "a-folder-with-a-long-name";
  fs::create_directories(deep);
  bind_in(deep);

  report({{"loss", 1}});

  EXPECT_EQ(received(), " loss=1");
}

TEST_F(Reports, DoNothingWithoutAListenerAndNeverWait) {
  for (int i = 0; i < 10'000; ++i) report({{"n", 1}});  // more than the socket has room for
  EXPECT_EQ(received(), " n=1");

  fs::remove(folder_ / "metrics");
  report({{"loss", 1}});
  for (const char* path : {"", "metrics", "/no/such/folder/metrics"}) {
    ::setenv("MUSTER_METRICS", path, 1);
    report({{"loss", 1}});
  }
  ::unsetenv("MUSTER_METRICS");
  report({{"loss", 1}});
}

TEST_F(Reports, LeaveNoDescriptorsOpen) {
  const auto open_ones = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_ones();

  for (int i = 0; i < 10; ++i) report({{"n", 1}});

  EXPECT_EQ(open_ones(), before);
}

}  // namespace
}  // namespace muster
