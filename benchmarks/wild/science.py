"""Optics, spectra, signals and distances: prysm, tmm, lmfit, antropy, pynndescent, hydroeval."""

from __future__ import annotations

import numpy as np

from benchmarks.wild.calls import With, calls, same

RANDOM = np.random.default_rng(9)
X = np.linspace(-0.9, 0.8, 7)
RHO, PHI = RANDOM.uniform(0.1, 0.9, (4, 4)), RANDOM.uniform(-3.0, 3.0, (4, 4))
PEAK = np.linspace(-2.0, 3.0, 9) + 0.0123
SERIES = np.cumsum(RANDOM.normal(size=40))
U, V = RANDOM.uniform(0.1, 1.0, 6), RANDOM.uniform(0.1, 1.0, 6)
LAYERS = ([1.0, 2.2, 1.5, 1.0], [np.inf, 100.0, 300.0, np.inf], 0.3, 500.0)

CALLS = [
    *same("prysm.polynomials.cheby", "cheby1 cheby1_der cheby2 cheby2_der cheby3 cheby4", 4, X),
    *same("prysm.polynomials.cheby", "cheby1_sequence cheby2_sequence", [1, 2, 4], X),
    *same("prysm.polynomials.legendre", "legendre legendre_der", 4, X),
    *calls("prysm.polynomials.jacobi", jacobi=(4, 0.5, 1.0, X), jacobi_der=(4, 0.5, 1.0, X), weight=(0.5, 1.0, X)),
    *calls("prysm.polynomials.jacobi", jacobi_sum_clenshaw=(np.array([0.1, 0.4, -0.2]), 0.5, 1.0, X)),
    *same("prysm.polynomials.hermite", "hermite_H hermite_H_der hermite_He hermite_He_der", 4, X),
    *calls("prysm.polynomials.zernike", zernike_nm=(4, 2, RHO, PHI), zernike_nm_sequence=([(2, 0), (3, 1)], RHO, PHI)),
    *calls(
        "prysm.polynomials.qpoly", Qbfs=(3, RHO), Qcon=(3, RHO), Q2d=(3, 1, RHO, PHI), product_rule=(1.0, 2.0, 3.0, 4.0)
    ),
    *calls("prysm.geometry", gaussian=(0.5, RHO, PHI)),
    *calls("prysm.coordinates", cart_to_polar=With(RHO, PHI, vec_to_grid=False), polar_to_cart=(RHO, PHI)),
    *calls("prysm.coordinates", make_rotation_matrix=(np.array([10.0, 20.0, 30.0]),)),
    *calls(
        "prysm.thinlens",
        defocus_to_image_displacement=(1.5, 4.0),
        fno_to_na=4.0,
        image_displacement_to_defocus=(20.0, 4.0, 0.5),
        image_dist_epd_to_fno=(100.0, 20.0),
        image_dist_epd_to_na=(100.0, 20.0),
        image_to_object_dist=(50.0, 70.0),
        linear_to_long_mag=0.5,
        mag_to_fno=(0.5, 4.0),
        mag_to_object_dist=(50.0, 0.5),
        na_to_fno=0.1,
        object_dist_to_mag=(50.0, 200.0),
        object_to_image_dist=(50.0, 200.0),
        singlet_efl=(0.02, -0.01, 5.0, 1.5),
        twolens_bfl=(50.0, 80.0, 10.0),
        twolens_efl=(50.0, 80.0, 10.0),
    ),
    *calls(
        "prysm.refractive", cauchy=(0.55, 1.5, 0.004, 1e-4), sellmeier=(0.55, [1.03, 0.23, 1.01], [0.006, 0.02, 103.5])
    ),
    *calls("prysm.psf", airydisk=(RHO * 5.0, 4.0, 0.5), jinc=RHO),
    *calls(
        "prysm.propagation",
        fresnel_number=(2.0, 100.0, 0.5),
        talbot_distance=(2.0, 0.5),
        pupil_sample_to_psf_sample=(0.1, 64, 0.5, 100.0),
    ),
    *calls("prysm.objects", pinhole_ft=(2.0, RHO), slit_ft=(2.0, 3.0, RHO, PHI)),
    *calls("prysm.util", Sa=SERIES, mean=SERIES, pv=SERIES, rms=SERIES, std=SERIES),
    *calls(
        "prysm.thinfilm",
        brewsters_angle=(1.0, 1.5),
        critical_angle=(1.0, 1.5),
        fresnel_rp=(1.0, 1.5, 0.3, 0.2),
        fresnel_rs=(1.0, 1.5, 0.3, 0.2),
        fresnel_tp=(1.0, 1.5, 0.3, 0.2),
        fresnel_ts=(1.0, 1.5, 0.3, 0.2),
        snell_aor=(1.0, 1.5, 20.0),
        characteristic_matrix_p=(0.5, 0.1, 1.5, 0.2),
    ),
    *calls(
        "tmm.tmm_core",
        R_from_r=0.3,
        T_from_t=("s", 0.3, 1.0, 1.5, 0.3, 0.2),
        interface_R=("p", 1.0, 1.5, 0.3, 0.2),
        interface_T=("s", 1.0, 1.5, 0.3, 0.2),
        interface_r=("s", 1.0, 1.5, 0.3, 0.2),
        interface_t=("p", 1.0, 1.5, 0.3, 0.2),
        snell=(1.0, 1.5, 0.3),
        list_snell=(np.array([1.0, 2.2, 1.5]), 0.3),
        coh_tmm=("s", *LAYERS),
        unpolarized_RT=LAYERS,
        ellips=LAYERS,
        make_2x2_array=(1.0, 2.0, 3.0, 4.0),
    ),
    *same(
        "lmfit.lineshapes",
        "breit_wigner damped_oscillator doniach expgaussian gaussian gaussian2d linear logistic"
        " lorentzian moffat parabolic pearson4 pearson7 pvoigt rectangle sine skewed_gaussian"
        " skewed_voigt split_lorentzian step students_t voigt",
        PEAK,
        1.3,
    ),
    *calls(
        "lmfit.lineshapes",
        bose=(PEAK + 4.0, 1.3, 0.5, 0.7),
        dho=(PEAK, 1.3, 1.1, 0.6),
        exponential=(PEAK, 1.3, 0.8),
        expsine=(PEAK, 1.3, 0.8, 0.1, 0.2),
        fermi=(PEAK, 1.3, 0.5, 0.7),
        lognormal=(PEAK + 3.0, 1.3, 0.5, 0.7),
        powerlaw=(PEAK + 3.0, 1.3, 0.7),
        thermal_distribution=With(PEAK + 4.0, 1.3, 0.5, 0.7, form="maxwell"),
        not_zero=0.3,
    ),
    *calls(
        "antropy.entropy",
        hjorth_params=SERIES,
        spectral_entropy=With(SERIES, 100.0),
        svd_entropy=SERIES,
        sample_entropy=SERIES,
    ),
    *calls("antropy.fractal", higuchi_fd=SERIES, katz_fd=SERIES, petrosian_fd=SERIES, detrended_fluctuation=SERIES),
    *same(
        "pynndescent.distances",
        "alternative_cosine alternative_dot alternative_hellinger bray_curtis canberra chebyshev"
        " correlation cosine dot euclidean hellinger inner_product jensen_shannon_divergence manhattan"
        " minkowski squared_euclidean symmetric_kl_divergence true_angular tsss wasserstein_1d"
        " proxy_wasserstein_1d spearmanr",
        U,
        V,
    ),
    *calls(
        "pynndescent.distances",
        haversine=(U[:2], V[:2]),
        standardised_euclidean=(U, V, np.linspace(0.5, 1.5, 6)),
        weighted_minkowski=(U, V, np.linspace(0.5, 1.5, 6), 3),
        mahalanobis=(U, V, np.diag(np.linspace(0.5, 1.5, 6))),
    ),
    *same(
        "hydroeval.objective_functions",
        "kge kgeprime mare nse pbias rmse nse_c2m kge_c2m",
        SERIES[:, None] + 20.0,
        SERIES[::-1] + 21.0,
    ),
]
