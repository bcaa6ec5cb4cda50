// The help of a verb: its own examples, whose options it has, and no option that it would ignore.

#include <regex>
#include <set>
#include <sstream>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

const std::vector<Words> kVerbs{{"info"},
                                {"plan", "cholesky"},
                                {"plan", "sparse"},
                                {"plan", "qr"},
                                {"solve"},
                                {"inverse"},
                                {"loglik"},
                                {"fit"},
                                {"predict"},
                                {"crossval"},
                                {"simulate"},
                                {"kl"},
                                {"qr"},
                                {"lstsq"},
                                {"eigs"},
                                {"analyze"},
                                {"factor"},
                                {"logdet"},
                                {"variances"},
                                {"schur"},
                                {"shift"}};

/// The options that a text names: --name, and -o.
std::set<std::string> options_in(const std::string& text) {
  static const std::regex option("(?:^|[ ,])(--[a-z][a-z0-9-]*|-o)(?![a-z0-9-])");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), option), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

TEST(CliHelp, EndsWithExamplesOfTheVerbWhoseOptionsItHas) {
  for (const Words& verb : kVerbs) {
    std::string name = "strata";
    for (const std::string& word : verb) name += " " + word;
    SCOPED_TRACE(name);
    const std::string help = expect_done(verb + Words{"--help"});
    const std::size_t begin = help.find("Examples:\n");
    ASSERT_NE(begin, std::string::npos);
    const std::set<std::string> known = options_in(help.substr(0, begin));
    std::istringstream examples(help.substr(begin));
    std::string line;
    std::getline(examples, line);
    int count = 0;
    while (std::getline(examples, line)) {
      if (line.empty()) continue;
      ++count;
      EXPECT_EQ(line.rfind("  " + name + (verb[0] == "info" ? "" : " "), 0), 0U) << line;
      for (const std::string& option : options_in(line))
        EXPECT_EQ(known.count(option), 1U) << option << " in: " << line;
    }
    EXPECT_GE(count, 1);
  }
}

TEST(CliHelp, HasNoOptionThatWouldBeIgnored) {
  const auto options_of = [](const Words& verb) {
    return options_in(expect_done(verb + Words{"--help"}));
  };
  for (const Words& verb : std::vector<Words>{{"qr"}, {"lstsq"}, {"eigs"}, {"plan", "qr"}}) {
    SCOPED_TRACE(verb.back());
    const auto options = options_of(verb);
    for (const char* option :
         {"--tile", "--path", "--variant", "--reproducible", "--host-pinning", "--host-memory"})
      EXPECT_FALSE(options.contains(option)) << option;
    EXPECT_TRUE(options.contains("--policy"));
  }
  for (const Words& verb : std::vector<Words>{
           {"factor"}, {"logdet"}, {"variances"}, {"schur"}, {"shift"}, {"plan", "sparse"}}) {
    SCOPED_TRACE(verb.back());
    const auto options = options_of(verb);
    for (const char* option : {"--path", "--variant", "--reproducible"})
      EXPECT_FALSE(options.contains(option)) << option;
    for (const char* option : {"--tile", "--host-memory", "--host-pinning"})
      EXPECT_TRUE(options.contains(option)) << option;
  }
  const auto of_loglik = options_of({"loglik"});
  for (const char* option : {"--path", "--variant", "--reproducible"})
    EXPECT_TRUE(of_loglik.contains(option)) << option;
  expect_refused({"qr", "V.npy", "--tile", "64"}, 2, {"--tile"});
  expect_refused({"logdet", "A.mtx", "--variant", "left"}, 2, {"--variant"});
}

}  // namespace
}  // namespace strata::test
