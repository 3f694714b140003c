"""Objectives of global optimization: deap, SALib, opfunu (whose objects count their calls)."""

from __future__ import annotations

import numpy as np

from benchmarks.wild.calls import Call, calls, same

RANDOM = np.random.default_rng(11)
POINT = [0.31, 0.62, 0.17, 0.83]

# classes of opfunu whose `evaluate` is continuous
OPFUNU = """
Ackley01 Ackley02 Ackley03 Adjiman Alpine01 Alpine02 AMGM BartelsConn Beale BiggsExp02 BiggsExp03 BiggsExp04
BiggsExp05 Bird Bohachevsky1 Bohachevsky2 Bohachevsky3 Booth BoxBetts Branin01 Branin02 Brent Brown Bukin02
Bukin04 Bukin06 CamelThreeHump CamelSixHump ChenBird ChenV Chichinadze ChungReynolds Cigar Cola Colville
CosineMixture CrossInTray CrossLegTable CrownedCross Csendes Cube Damavandi Deb01 Deb03 Decanomial
DeckkersAarts DeflectedCorrugatedSpring DeVilliersGlasser01 DeVilliersGlasser02 DixonPrice Dolan DropWave
Easom ElAttarVidyasagarDutta EggCrate EggHolder Exponential Exp2 Eckerle4 FreudensteinRoth Giunta
GoldsteinPrice Griewank Gulf Gear Hansen Hartmann3 Hartmann6 HelicalValley Himmelblau Hosaki HolderTable
Infinity JennrichSampson Judge Katsuura Keane Kowalik Langermann LennardJones Leon Levy03 Levy05 Levy13 Matyas
McCormick Meyer Michalewicz MieleCantrell Mishra01 Mishra02 Mishra03 Mishra04 Mishra05 Mishra06 Mishra07
Mishra08 Mishra09 Mishra10 Mishra11 MultiModal NeedleEye OddSquare Parsopoulos Qing Quadratic Quintic
Rana Salomon TestTubeHolder Ursem01 VenterSobiezcczanskiSobieski Watson YaoLiu04 Zacharov ZeroSum
Zettl Zimmerman Zirilli
""".split()


def objective(name: str) -> Call:
    """A call of `evaluate` at a point within the bounds that the object states."""
    found = Call(f"opfunu.name_based.{name}().evaluate", (), {})
    owner = found.resolve().__self__  # type: ignore[attr-defined]
    share = np.random.default_rng(len(name)).uniform(0.35, 0.65, owner.ndim)
    return Call(found.function, (owner.lb + share * (owner.ub - owner.lb),), {})


CALLS = [
    *same(
        "deap.benchmarks",
        "ackley bohachevsky cigar griewank rastrigin rastrigin_scaled rastrigin_skew rosenbrock"
        " schaffer schwefel sphere plane fonseca kursawe schaffer_mo zdt1 zdt2 zdt3 zdt4 zdt6",
        POINT,
    ),
    *same("deap.benchmarks", "h1 himmelblau poloni dent", POINT[:2]),
    *same("deap.benchmarks", "dtlz1 dtlz2 dtlz3 dtlz5 dtlz6", POINT, 3),
    *calls("deap.benchmarks", dtlz4=(POINT, 3, 1.5), shekel=(POINT, np.full((3, 4), 0.5), np.array([0.1, 0.2, 0.3]))),
    *calls("SALib.test_functions.Ishigami", evaluate=RANDOM.uniform(-3.0, 3.0, (5, 3))),
    *calls("SALib.test_functions.Sobol_G", evaluate=RANDOM.uniform(0.1, 0.4, (5, 8))),
    *calls("SALib.test_functions.linear_model_1", evaluate=RANDOM.uniform(0.1, 0.4, (5, 6))),
    *calls("SALib.test_functions.linear_model_2", evaluate=RANDOM.uniform(0.1, 0.4, (5, 6))),
    *calls("SALib.test_functions.lake_problem", lake_problem=(0.02, 2.5, 0.0, 0.02, 0.8, 0.43, 0.98, 0.04)),
    *(objective(name) for name in OPFUNU),
]
