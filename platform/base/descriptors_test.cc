#include "base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "base/unique_fd.h"

namespace muster::base {
namespace {

TEST(CountDescriptors, CountsThoseThatAreOpen) {
  const int64_t before = count_descriptors().open;
  std::vector<UniqueFd> more;
  for (int i = 0; i < 5; ++i) more.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));

  EXPECT_EQ(count_descriptors().open, before + 5);
  more.clear();
  EXPECT_EQ(count_descriptors().open, before);
}

TEST(DescriptorLimit, IsRaisedToTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(descriptor_limit(), 100);
  EXPECT_EQ(count_descriptors().limit, 100);

  raise_descriptor_limit();

  rlimit now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(StandardStreams, AreOpenAfterwards) {
  const UniqueFd kept(::dup(STDOUT_FILENO));
  ::close(STDOUT_FILENO);

  open_standard_streams();

  const UniqueFd next(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_GT(next.get(), STDERR_FILENO);
  EXPECT_EQ(::write(STDOUT_FILENO, "x", 1), 1);
  ::dup2(kept.get(), STDOUT_FILENO);
}

}  // namespace
}  // namespace muster::base
