// Variables for the length of a scope, and what others set meanwhile.

#include "base/environment_overlay.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace strata::testing {
namespace {

std::string value(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "(none)" : text;
}

class Overlay : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("STRATA_TEST_OLD", "old", 1);
    setenv("STRATA_TEST_OLDER", "older", 1);  // begins as the other does
    unsetenv("STRATA_TEST_NEW");
    unsetenv("STRATA_TEST_THEIRS");
  }
  void TearDown() override {
    for (const char* name : {"STRATA_TEST_OLD", "STRATA_TEST_OLDER", "STRATA_TEST_THEIRS"})
      unsetenv(name);
  }

  const EnvironmentOverlay::Variables variables_{{"STRATA_TEST_OLD", "ours"},
                                                 {"STRATA_TEST_NEW", "new=1"}};
};

TEST_F(Overlay, ReplacesAndAddsForItsScope) {
  char** const before = environ;
  {
    const EnvironmentOverlay overlay(variables_);
    EXPECT_EQ(value("STRATA_TEST_OLD"), "ours");
    EXPECT_EQ(value("STRATA_TEST_NEW"), "new=1");
    EXPECT_EQ(value("STRATA_TEST_OLDER"), "older");
    EXPECT_EQ(value("PATH"), std::getenv("PATH") == nullptr ? "(none)" : std::getenv("PATH"));
    {
      const EnvironmentOverlay inner(EnvironmentOverlay::Variables{{"STRATA_TEST_NEW", "newer"}});
      EXPECT_EQ(value("STRATA_TEST_NEW"), "newer");
      EXPECT_EQ(value("STRATA_TEST_OLD"), "ours");
    }
    EXPECT_EQ(value("STRATA_TEST_NEW"), "new=1");
  }
  EXPECT_EQ(environ, before) << "the very array, which others may be reading";
  EXPECT_EQ(value("STRATA_TEST_OLD"), "old");
  EXPECT_EQ(value("STRATA_TEST_NEW"), "(none)");
}

TEST_F(Overlay, KeepsWhatOthersAddMeanwhile) {
  {
    const EnvironmentOverlay overlay(variables_);
    setenv("STRATA_TEST_THEIRS", "theirs", 1);
  }
  EXPECT_EQ(value("STRATA_TEST_THEIRS"), "theirs");
  EXPECT_EQ(value("STRATA_TEST_OLD"), "old");
  EXPECT_EQ(value("STRATA_TEST_NEW"), "(none)");
}

TEST_F(Overlay, KeepsWhatOthersChangeOrRemoveMeanwhile) {
  setenv("STRATA_TEST_THEIRS", "theirs", 1);
  {
    const EnvironmentOverlay overlay(variables_);
    setenv("STRATA_TEST_OLDER", "changed", 1);
    unsetenv("STRATA_TEST_THEIRS");
  }
  EXPECT_EQ(value("STRATA_TEST_OLDER"), "changed");
  EXPECT_EQ(value("STRATA_TEST_THEIRS"), "(none)");
  EXPECT_EQ(value("STRATA_TEST_OLD"), "old");
  EXPECT_EQ(value("STRATA_TEST_NEW"), "(none)");
}

}  // namespace
}  // namespace strata::testing
