#include "job/spec.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

JobSpec in_an_image() {
  return {.name = "a", .image = "python:3", .folder = "/home/ada"};
}

TEST(Inherited, AreListedForAJobThatNamesAnImage) {
  JobSpec spec = in_an_image();
  EXPECT_TRUE(inherited_variables(spec).empty());
  EXPECT_FALSE(inherits_folder(spec));

  note_inherited({"HOME", "PATH"}, true, spec);

  EXPECT_EQ(inherited_variables(spec), (std::set<std::string>{"HOME", "PATH"}));
  EXPECT_TRUE(inherits_folder(spec));
}

TEST(Inherited, AreListedIfOnlyOneRoleNamesAnImage) {
  for (RoleSpec JobSpec::* role :
       {&JobSpec::leader, &JobSpec::parameter_server, &JobSpec::evaluator}) {
    JobSpec spec = in_an_image();
    spec.image = "";
    (spec.*role).image = "python:3";

    note_inherited({"PATH"}, false, spec);

    EXPECT_EQ(inherited_variables(spec), std::set<std::string>{"PATH"});
  }
}

TEST(Inherited, AreNotListedForAJobWithoutAnImage) {
  JobSpec spec = in_an_image();
  spec.image = "";
  const JobSpec before = spec;

  note_inherited({"PATH"}, true, spec);

  EXPECT_EQ(spec, before);
}

TEST(Inherited, DoNotIncludeAFolderThatWasChosenLater) {
  JobSpec forgotten = in_an_image();
  note_inherited({}, true, forgotten);
  JobSpec moved = forgotten;

  forget_inherited_folder(forgotten);
  moved.folder = "/workspace";

  EXPECT_EQ(forgotten, in_an_image());
  EXPECT_FALSE(inherits_folder(moved));
}

}  // namespace
}  // namespace muster::job
