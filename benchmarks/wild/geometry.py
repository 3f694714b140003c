"""Rotations, transformations and solid geometry: transforms3d, pyrr, pytransform3d, ahrs, trimesh, rmsd."""

from __future__ import annotations

import numpy as np

from benchmarks.wild.calls import With, calls, same

RANDOM = np.random.default_rng(7)
AXIS = np.array([0.2, -0.5, 0.8])
UNIT = AXIS / np.linalg.norm(AXIS)
OTHER = np.array([0.9, 0.3, -0.4])
Q = np.array([0.8, 0.2, -0.4, 0.4])
Q = Q / np.linalg.norm(Q)
P = np.array([0.1, 0.7, 0.5, -0.5])
P = P / np.linalg.norm(P)
EULER = np.array([0.3, -0.5, 0.8])


def rotation(angle: float = 0.7) -> np.ndarray:
    """Rodrigues' formula about `UNIT`."""
    cross = np.array([[0.0, -UNIT[2], UNIT[1]], [UNIT[2], 0.0, -UNIT[0]], [-UNIT[1], UNIT[0], 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


R = rotation()
A44 = np.eye(4)
A44[:3, :3] = R
A44[:3, 3] = [1.0, -2.0, 0.5]
B44 = np.eye(4)
B44[:3, :3] = rotation(-0.4)
B44[:3, 3] = [0.3, 0.1, 2.0]
CLOUD, MOVED = RANDOM.normal(size=(7, 3)), RANDOM.normal(size=(7, 3))
DUAL = np.concatenate([Q, 0.5 * np.array([-0.3, 0.2, 0.5, 0.1])])

CALLS = [
    *calls(
        "transforms3d.affines",
        compose=(np.array([1.0, 2.0, 3.0]), R, np.array([1.1, 0.9, 1.3])),
        decompose=A44,
        decompose44=A44,
    ),
    *calls(
        "transforms3d.axangles", axangle2mat=(AXIS, 0.5), axangle2aff=(AXIS, 0.5, OTHER), mat2axangle=R, aff2axangle=A44
    ),
    *same("transforms3d.euler", "euler2mat euler2quat euler2axangle", 0.3, -0.5, 0.8, "szyx"),
    *calls("transforms3d.euler", mat2euler=(R, "sxyz"), quat2euler=(Q, "rzxy"), axangle2euler=(AXIS, 0.4)),
    *same("transforms3d.quaternions", "qconjugate qexp qinverse qlog qnorm quat2mat quat2axangle qisunit", Q),
    *calls(
        "transforms3d.quaternions",
        axangle2quat=(AXIS, 0.4),
        fillpositive=np.array([0.2, 0.3, 0.4]),
        mat2quat=R,
        qmult=(Q, P),
        qpow=(Q, 2.5),
        rotate_vector=(OTHER, Q),
        nearly_equivalent=(Q, P),
    ),
    *calls("transforms3d.reflections", rfnorm2mat=AXIS, rfnorm2aff=(AXIS, OTHER)),
    *calls(
        "transforms3d.shears",
        sadn2mat=(0.5, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])),
        striu2mat=np.array([0.1, 0.2, 0.3]),
        inverse_outer=np.outer(AXIS, OTHER),
    ),
    *same("transforms3d.taitbryan", "euler2mat euler2quat euler2axangle", 0.3, -0.5, 0.8),
    *calls("transforms3d.taitbryan", mat2euler=R, quat2euler=Q, axangle2euler=(AXIS, 0.4)),
    *calls("transforms3d.zooms", zfdir2mat=(1.5, AXIS), zfdir2aff=(1.5, AXIS, OTHER)),
    *calls("transforms3d.utils", normalized_vector=AXIS, vector_norm=AXIS),
    *same("pyrr.vector", "length normalize squared_length", AXIS),
    *calls("pyrr.vector", dot=(AXIS, OTHER), interpolate=(AXIS, OTHER, 0.3), set_length=(AXIS, 2.0)),
    *calls("pyrr.vector3", cross=(AXIS, OTHER), generate_normals=(AXIS, OTHER, UNIT + 1.0)),
    *same(
        "pyrr.quaternion",
        "conjugate exp inverse length negate normalize rotation_angle rotation_axis squared_length",
        Q,
    ),
    *calls(
        "pyrr.quaternion",
        apply_to_vector=(Q, OTHER),
        create_from_axis=AXIS,
        create_from_axis_rotation=(AXIS, 0.4),
        create_from_eulers=EULER,
        create_from_matrix=R,
        create_from_x_rotation=0.3,
        cross=(Q, P),
        lerp=(Q, P, 0.3),
        power=(Q, 2.0),
        slerp=(Q, P, 0.3),
    ),
    *calls(
        "pyrr.matrix33",
        apply_to_vector=(R, OTHER),
        create_from_axis_rotation=(UNIT, 0.4),
        create_from_eulers=EULER,
        create_from_quaternion=Q,
        create_from_scale=AXIS,
        create_from_y_rotation=0.3,
        create_direction_scale=(AXIS, 1.5),
        inverse=R,
        multiply=(R, R.T * 2.0),
    ),
    *calls(
        "pyrr.matrix44",
        apply_to_vector=(A44, OTHER),
        create_from_eulers=EULER,
        create_from_quaternion=Q,
        create_from_translation=OTHER,
        create_look_at=(AXIS, OTHER, np.array([0.0, 1.0, 0.0])),
        create_orthogonal_projection=(-1.0, 1.5, -2.0, 2.5, 0.1, 9.0),
        create_perspective_projection=(60.0, 1.5, 0.1, 10.0),
        decompose=A44,
        inverse=A44,
        multiply=(A44, B44),
    ),
    *calls(
        "pyrr.plane",
        create=(UNIT, 0.5),
        create_from_points=(AXIS, OTHER, UNIT + 1.0),
        create_from_position=(AXIS, OTHER),
        invert_normal=np.array([0.1, 0.2, 0.3, 0.4]),
        position=np.array([0.1, 0.2, 0.3, 0.4]),
    ),
    *calls(
        "pyrr.geometric_tests",
        point_closest_point_on_line=(OTHER, np.array([AXIS, UNIT + 1.0])),
        point_closest_point_on_line_segment=(OTHER, np.array([AXIS, UNIT + 1.0])),
        point_closest_point_on_plane=(OTHER, np.array([0.0, 1.0, 0.0, 0.5])),
        point_closest_point_on_ray=(OTHER, np.array([AXIS, UNIT])),
        point_height_above_plane=(OTHER, np.array([0.0, 1.0, 0.0, 0.5])),
        ray_intersect_plane=(np.array([[0.0, 5.0, 0.0], [0.1, -1.0, 0.2]]), np.array([0.0, 1.0, 0.0, 0.5])),
        ray_intersect_sphere=(np.array([[0.0, 5.0, 0.0], [0.0, -1.0, 0.0]]), np.array([0.1, 0.2, 0.3, 2.0])),
        ray_intersect_aabb=(
            np.array([[0.1, 5.0, 0.2], [0.05, -1.0, 0.02]]),
            np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]),
        ),
        sphere_penetration_sphere=(np.array([0.1, 0.2, 0.3, 2.0]), np.array([1.1, 0.2, 0.3, 1.0])),
        solve_quadratic_equation=(1.0, -3.5, 2.0),
    ),
    *calls("pyrr.aabb", create_from_points=CLOUD, centre_point=np.array([[-1.0, -2.0, -1.0], [1.0, 1.0, 1.5]])),
    *calls(
        "pyrr.trig",
        aspect_ratio=(4.0, 3.0),
        calculate_fov=(2.0, 1.5),
        calculate_height=(60.0, 2.0),
        calculate_zoom=(60.0, 2.0),
    ),
    *same(
        "pytransform3d.rotations",
        "active_matrix_from_extrinsic_euler_xyz active_matrix_from_intrinsic_euler_zyx"
        " active_matrix_from_extrinsic_roll_pitch_yaw cross_product_matrix",
        EULER,
    ),
    *calls(
        "pytransform3d.rotations",
        active_matrix_from_angle=(1, 0.3),
        angle_between_vectors=(AXIS, OTHER),
        axis_angle_from_matrix=R,
        axis_angle_from_quaternion=Q,
        axis_angle_from_two_directions=(AXIS, OTHER),
        compact_axis_angle_from_quaternion=Q,
        concatenate_quaternions=(Q, P),
        euler_from_matrix=(R, 0, 1, 2, True),
        euler_from_quaternion=(Q, 0, 1, 2, False),
        matrix_from_axis_angle=np.array([*UNIT, 0.7]),
        matrix_from_compact_axis_angle=EULER,
        matrix_from_quaternion=Q,
        matrix_from_two_vectors=(AXIS, OTHER),
        perpendicular_to_vectors=(AXIS, OTHER),
        plane_basis_from_normal=UNIT,
        quaternion_from_axis_angle=np.array([*UNIT, 0.7]),
        quaternion_from_matrix=R,
        quaternion_slerp=(Q, P, 0.3),
        q_prod_vector=(Q, OTHER),
        vector_projection=(AXIS, OTHER),
        left_jacobian_SO3=EULER,
        left_jacobian_SO3_inv=EULER,
    ),
    *calls(
        "pytransform3d.transformations",
        adjoint_from_transform=A44,
        concat=(A44, B44),
        concatenate_dual_quaternions=(DUAL, DUAL),
        dual_quaternion_from_transform=A44,
        exponential_coordinates_from_transform=A44,
        invert_transform=A44,
        left_jacobian_SE3=np.array([0.1, 0.3, -0.2, 0.5, 0.2, 0.4]),
        pq_from_transform=A44,
        transform=(A44, np.array([0.3, 0.4, 0.5, 1.0])),
        transform_from=(R, OTHER),
        transform_from_exponential_coordinates=np.array([0.1, 0.3, -0.2, 0.5, 0.2, 0.4]),
        transform_from_pq=np.array([*OTHER, *Q]),
        transform_log_from_transform=A44,
        transform_sclerp=(A44, B44, 0.4),
        vector_to_point=OTHER,
    ),
    *calls(
        "ahrs.common.orientation",
        acc2q=np.array([0.1, 0.3, 9.7]),
        am2angles=(np.array([[0.1, 0.3, 9.7]]), np.array([[20.0, 3.0, -40.0]])),
        am2q=(np.array([0.1, 0.3, 9.7]), np.array([20.0, 3.0, -40.0])),
        axang2quat=(UNIT, 0.4),
        chiaverini=R,
        dcm2quat=R,
        ecompass=(np.array([0.1, 0.3, 9.7]), np.array([20.0, 3.0, -40.0])),
        hughes=R,
        itzhack=R,
        q2R=Q,
        q2euler=Q,
        q2rpy=Q,
        q_conj=Q,
        q_mult_L=Q,
        q_mult_R=Q,
        q_norm=Q,
        q_prod=(P, Q),
        q_rot=(Q, OTHER),
        quat2axang=Q,
        rpy2q=EULER,
        sarabandi=R,
        shepperd=R,
        slerp=(Q, P, np.array([0.2, 0.5, 0.7])),
    ),
    *calls(
        "ahrs.common.frames",
        aer2enu=(30.0, 20.0, 1000.0),
        ecef2enu=(4.2e6, 1.7e5, 4.78e6, 48.8, 2.3, 100.0),
        ecef2geodetic=(4.2e6, 1.7e5, 4.78e6),
        ecef2llf=(48.8, 2.3),
        eci2ecef=(7.29e-5, 100.0),
        enu2aer=(10.0, 20.0, 5.0),
        enu2ecef=(10.0, 20.0, 5.0, 48.8, 2.3, 100.0),
        enu2uvw=(10.0, 20.0, 5.0, 48.8, 2.3),
        geodetic2ecef=(48.8, 2.3, 100.0),
        geodetic2enu=(48.9, 2.4, 120.0, 48.8, 2.3, 100.0),
    ),
    *same("ahrs.utils.metrics", "chordal identity_deviation angular_distance", R, rotation(0.3)),
    *same("ahrs.utils.metrics", "qad qcip qdist qeip", Q, P),
    *calls("ahrs.utils.metrics", euclidean=(AXIS, OTHER), rmse=(CLOUD, MOVED), rmse_matrices=(R, R.T)),
    *calls("ahrs.utils.wgs84", international_gravity=48.0, welmec_gravity=(48.0, 200.0)),
    *calls(
        "trimesh.transformations",
        angle_between_vectors=(AXIS, OTHER),
        clip_matrix=(-1.0, 1.5, -2.0, 2.5, 0.1, 9.0),
        compose_matrix=With(AXIS, OTHER, EULER, UNIT),
        concatenate_matrices=(A44, B44, A44),
        decompose_matrix=A44 + np.outer([0.0, 0.0, 0.0, 1.0], [0.1, 0.2, -0.1, 0.0]),
        euler_from_matrix=(A44, "syxz"),
        euler_from_quaternion=Q,
        euler_matrix=(0.3, -0.5, 0.8, "syxz"),
        inverse_matrix=A44,
        orthogonalization_matrix=(np.array([10.0, 11.0, 12.0]), np.array([80.0, 95.0, 100.0])),
        planar_matrix=(np.array([1.0, 2.0]), 0.3),
        projection_matrix=(AXIS, OTHER),
        quaternion_about_axis=(0.4, AXIS),
        quaternion_conjugate=Q,
        quaternion_from_euler=(0.3, -0.5, 0.8, "syxz"),
        quaternion_from_matrix=With(A44, isprecise=True),
        quaternion_inverse=Q,
        quaternion_matrix=Q,
        quaternion_multiply=(Q, P),
        quaternion_slerp=(Q, P, 0.3),
        reflection_matrix=(AXIS, OTHER),
        rotation_from_matrix=A44,
        rotation_matrix=(0.4, AXIS, OTHER),
        scale_matrix=(1.3, OTHER, AXIS),
        shear_matrix=(0.4, np.array([1.0, 0.0, 0.0]), AXIS, np.array([0.0, 1.0, 0.0])),
        spherical_matrix=(0.3, 0.5),
        superimposition_matrix=(CLOUD.T, MOVED.T),
        transform_around=(A44, OTHER),
        transform_points=(CLOUD, A44),
        translation_matrix=AXIS,
        unit_vector=AXIS,
        vector_norm=CLOUD,
        vector_product=(AXIS, OTHER),
    ),
    *same(
        "rmsd.calculate_rmsd",
        "kabsch kabsch_fit kabsch_rmsd kabsch_rotate quaternion_rmsd quaternion_rotate rmsd",
        CLOUD,
        MOVED,
    ),
    *calls(
        "rmsd.calculate_rmsd",
        centroid=CLOUD,
        get_inertia_tensor=(np.array([6, 1, 1, 8, 1, 7, 6]), CLOUD),
        kabsch_weighted=(CLOUD, MOVED, np.linspace(0.5, 1.5, 7)),
        kabsch_weighted_rmsd=(CLOUD, MOVED),
        quaternion_transform=Q,
        rotation_matrix_vectors=(AXIS, OTHER),
    ),
]
