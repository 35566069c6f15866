#include "workspace/sources.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::workspace {
namespace {

using base::ErrorCode;

class Sources : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "src");
    std::filesystem::create_directory(folder_ / "git@host:x");
    ASSERT_TRUE(base::write_file(folder_ / "train.py", "x"));
    ASSERT_TRUE(base::write_file(folder_ / "a.ZIP", "x"));
  }
  base::TestFolder folder_;
};

TEST_F(Sources, WhatIsWrittenIsToldApart) {
  for (const auto& [where, kind] : std::vector<std::pair<std::string, SourceKind>>{
           {".", SourceKind::kFolder},
           {"src", SourceKind::kFolder},
           {"./src", SourceKind::kFolder},
           {folder_.path().string(), SourceKind::kFolder},
           {"not-there", SourceKind::kFolder},
           {"git@host:x", SourceKind::kFolder},
           {"a.ZIP", SourceKind::kArchive},
           {"b.tar.gz", SourceKind::kArchive},
           {"b.tgz", SourceKind::kArchive},
           {"b.tar", SourceKind::kArchive},
           {"https://host/a.git", SourceKind::kRepository},
           {"git@host:y", SourceKind::kRepository}}) {
    const auto found = kind_of({.where = where}, folder_);
    ASSERT_TRUE(found) << where << ": " << found.error().to_string();
    EXPECT_EQ(*found, kind) << where;
  }
}

TEST_F(Sources, WhatIsNoneOfTheseIsRefusedWithWhatToDoInstead) {
  for (const auto& [source, words] : std::vector<std::pair<Source, std::string>>{
           {{.where = ""}, "is empty"},
           {{.where = "--upload-pack=x"}, "is an option, not a workspace"},
           {{.where = "-"}, "is an option, not a workspace"},
           {{.where = "train.py"}, "neither a folder nor an archive"},
           {{.where = "src", .ref = "main"}, "is not a repository"},
           {{.where = "s3://bucket/x"}, "aws s3 cp"},
           {{.where = "https://host/a.zip"}, "download it"},
           {{.where = "https://host/a"}, "git+https://host/a"},
           {{.where = "ext::sh -c id"}, "would run a program"},
           {{.where = "https://host/a.git", .ref = "-x"}, "is not a branch"},
           {{.where = "https://a:b@host/a.git"}, "git help credentials"}}) {
    const auto kind = kind_of(source, folder_);
    ASSERT_FALSE(kind) << source.where;
    EXPECT_EQ(kind.error().code, ErrorCode::kInvalid) << source.where;
    EXPECT_NE(kind.error().to_string().find(words), std::string::npos) << kind.error().to_string();
  }
}

TEST_F(Sources, AFolderIsTakenWhereItIsAndStaysThere) {
  {
    const auto fetched = fetch({.where = "src"}, folder_, 1 << 20);
    ASSERT_TRUE(fetched) << fetched.error().to_string();
    EXPECT_EQ(fetched->folder, folder_ / "src");
    EXPECT_TRUE(fetched->own.empty());
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / "src"));
}

TEST_F(Sources, WhatIsNotThereIsNotFoundByItsWholePath) {
  for (const std::string where : {"nothing", "nothing.zip"}) {
    const auto fetched = fetch({.where = where}, folder_, 1 << 20);
    ASSERT_FALSE(fetched);
    EXPECT_EQ(fetched.error().code, ErrorCode::kNotFound);
    EXPECT_NE(fetched.error().to_string().find((folder_ / where).string()), std::string::npos);
  }
}

}  // namespace
}  // namespace muster::workspace
